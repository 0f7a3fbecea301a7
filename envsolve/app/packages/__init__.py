"""The packages around a stack: requirements, indexes, channels, and what builds of packages need."""
