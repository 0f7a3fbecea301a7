"""What this machine is: its NVIDIA driver, its GPUs, its platform and C library, each with where it was learned.

``detection.detect`` asks, ``host_file`` writes and reads the answer. Every source is a
:class:`~envsolve.host.probe.Probe`; ``choose`` decides between them. Nothing is imported here, so that a caller pays
only for what it uses; ctypes, subprocess, json and pynvml are loaded by the functions that need them.
"""
