"""What runs in another interpreter than that of envsolve. Nothing here imports anything of envsolve."""
