"""A fake NVIDIA driver, compiled from C by the tests: real shared libraries, controlled by environment variables."""
