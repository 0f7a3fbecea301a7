"""Evidence to findings with remedies: an error text that is read, a machine and an environment that are looked at."""
