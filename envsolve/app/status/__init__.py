"""What a lock needs from a machine, whether it still meets a request, and how two locks differ."""
