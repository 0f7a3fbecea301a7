"""What a lock needs of a machine, whether it still meets a request, and how two differ."""
