"""The compatibility site: static pages with every answer of the solver, made from the matrix."""
