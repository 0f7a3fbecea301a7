"""Detection of this machine: its NVIDIA driver, GPUs, platform and C library, with the source of each fact.

``detection.detect`` detects it, ``host_file`` writes and reads the result. Every source is a
:class:`~envsolve.host.probe.Probe`; ``choose`` decides between them. Nothing is imported here, so that a caller pays
only for what it uses; ctypes, subprocess, json and pynvml are loaded by the functions that need them.
"""
