"""A fake NVIDIA driver, compiled from C by the tests: real shared libraries, steered by environment variables."""
