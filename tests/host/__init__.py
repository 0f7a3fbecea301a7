"""Tests of envsolve.host: file trees, a compiled fake driver, and recorded machines."""
