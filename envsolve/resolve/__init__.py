"""From a problem and the matrix to a stack, or to the facts that rule every stack out."""
