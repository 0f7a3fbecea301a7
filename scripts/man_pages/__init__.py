"""The manual pages of envsolve, one for each command, from what the commands say of themselves."""
