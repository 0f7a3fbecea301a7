"""What is wrong with a machine, before any environment: its driver, the files around it, and its variables.

``examine_machine`` takes :class:`Surroundings`, so that a recorded machine is examined as a live one is.
``nearest_the_cause`` thins out findings that say the same, those of a validation among them.
"""

from envsolve.diagnose.machine.examination import MachineReport, examine_machine
from envsolve.diagnose.machine.files import Limits
from envsolve.diagnose.machine.nearest import nearest_the_cause
from envsolve.diagnose.machine.survey import Surroundings

__all__ = ["Limits", "MachineReport", "Surroundings", "examine_machine", "nearest_the_cause"]
