"""Reading logs: of any size, in any encoding, whatever a terminal, a web page or a progress bar did to them.

A diagnosis reads what is :func:`~envsolve.diagnose.reading.interest.interesting`, a stream in bounded memory.
"""
