"""The words of envsolve as frozen values. Standard library and ``packaging`` only; nothing here reads or writes."""
