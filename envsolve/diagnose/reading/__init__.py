"""Reading logs: of any size, in any encoding, whatever a terminal, a web page or a progress bar did to them.

A diagnosis reads what is ``interesting``; :func:`~envsolve.diagnose.reading.lines.lines` is every line. Both are
streams in bounded memory. What is shown of a log goes through ``masked`` and ``printable``.
"""

from envsolve.boundary.secrets import masked
from envsolve.diagnose.reading.cleaning import cleaned, printable
from envsolve.diagnose.reading.decoding import decoded
from envsolve.diagnose.reading.interest import interesting
from envsolve.diagnose.reading.lines import Line

__all__ = ["Line", "cleaned", "decoded", "interesting", "masked", "printable"]
