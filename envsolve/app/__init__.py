"""The use cases: the only place where host, matrix, solver and lock writers meet."""
