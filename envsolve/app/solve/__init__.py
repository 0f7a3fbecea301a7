"""Stacks without packages: the answer, the builds that were skipped, and why."""
