"""A subset of conda channels on which the same requests have the same answers."""
