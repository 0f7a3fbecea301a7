"""Package indexes: their pages and the metadata of their files, over HTTP, with a cache."""
