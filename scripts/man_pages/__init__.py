"""The manual pages of envsolve, one for each command, from the help of the commands."""
