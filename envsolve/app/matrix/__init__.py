"""The matrix: its rows, and the releases that it does not have yet."""
