"""What packages exist: indexes over HTTP, their pages, the metadata of their files, and what is kept of them."""
