"""The matrix: its rows, and releases that it does not have yet."""
