"""What the packages around a stack have to do with it: requirements, indexes, channels, and what their builds need."""
