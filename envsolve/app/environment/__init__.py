"""Environments: made from a lock, kept like it, read, validated and examined."""
