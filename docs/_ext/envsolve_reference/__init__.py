"""The reference, written from the code of envsolve as Markdown. Nothing here needs Sphinx."""
