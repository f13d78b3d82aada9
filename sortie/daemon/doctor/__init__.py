"""What ``sortie doctor`` finds out: one check after the other, each with what can be done.

Nothing is written, and nothing of a daemon is touched. A part of the program that can be asked has
a list of checks; ``diagnose`` runs those lists in the order in which their faults have to be
mended.
"""

from __future__ import annotations

from sortie.daemon.doctor.checkup import Diagnosis, Tell, run_checks
from sortie.daemon.doctor.diagnosis import diagnose

__all__ = ["Diagnosis", "Tell", "diagnose", "run_checks"]
