"""The machines of a cluster, as the tools that run it list them."""
