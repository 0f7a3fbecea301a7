"""Programs for another interpreter than envsolve's. Nothing here imports anything from envsolve."""
