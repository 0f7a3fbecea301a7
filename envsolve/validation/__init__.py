"""Validation of an environment: probes that run inside it, and checks of its files that run nothing."""
