"""Solving: from a problem and the compatibility matrix to a stack, or to the facts that rule out every stack."""
