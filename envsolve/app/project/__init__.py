"""The requests of a project, and the locks that it has."""
