"""``python -m envsolve``."""

from envsolve.cli import main

if __name__ == "__main__":
    main()
