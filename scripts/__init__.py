"""What maintainers run: the matrix refresh and its check. Users need only the shell scripts beside this file."""
