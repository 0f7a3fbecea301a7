"""Record the part of a package index that resolutions may request, small enough to store with the tests."""
