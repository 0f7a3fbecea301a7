"""The requests of a project, and its locks."""
