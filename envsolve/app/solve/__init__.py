"""Stacks without packages: the answer, the builds that were passed over, and why."""
