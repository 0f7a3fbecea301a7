"""What is looked at in an environment: a module for each subject, a small function for each question."""
