"""The environment part of ``envsolve doctor``: what breaks GPU stacks in an environment, read from its files."""
