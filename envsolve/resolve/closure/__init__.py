"""The dependency closure: every Python package that a request needs, from package indexes, for one interpreter."""
