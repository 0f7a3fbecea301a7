"""The machines and options of a request, and its command line."""
