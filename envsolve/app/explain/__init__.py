"""The text of a failure: what it means, and the environments that would not have it."""
