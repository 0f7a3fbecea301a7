"""Files that versions of envsolve wrote, which every later one reads (README.md)."""
