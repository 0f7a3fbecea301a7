"""Lists of the nodes of a cluster, as its tools print them."""
