"""What is wrong with a machine, without any environment: its driver, the files around it, and its variables.

``nearest_the_cause`` removes findings that another one explains, also among those of a validation.
"""

from envsolve.diagnose.machine.examination import examine_machine
from envsolve.diagnose.machine.files import Limits
from envsolve.diagnose.machine.nearest import nearest_the_cause
from envsolve.diagnose.machine.survey import Survey

__all__ = ["Limits", "Survey", "examine_machine", "nearest_the_cause"]
