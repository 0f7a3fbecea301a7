"""Recording a package index: what resolutions may ask of it, kept small enough to lie beside the tests."""
