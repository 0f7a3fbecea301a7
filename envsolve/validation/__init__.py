"""Proving an environment: probes that run inside it, and what is to be read off its files without running anything."""
