"""Many machines: which environments they need, what changed since, and a validation on each of them."""
