"""The checks of an environment: a module for each subject, a small function for each check."""
