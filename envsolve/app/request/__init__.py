"""The machines and options of a request, and how a command would say it."""
