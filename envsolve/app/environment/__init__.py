"""Environments: create from a lock, sync, capture, export, validate and examine."""
