"""The vocabulary of envsolve as immutable values.

Standard library and ``packaging`` only; nothing here reads or writes.
"""
