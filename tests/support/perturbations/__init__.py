"""Edits of upstream's grid sampler files of the kinds that upstream makes, and what the series makes of the result.

A stack that applies in the wrong place is worse than one that is refused. The edits are structural and hold no text of
upstream's: the names they look for are those that the series is anchored to.
"""

from perturbations.kinds import KINDS, Edited, Kind
from perturbations.verdict import Verdict, judge, perturbed

__all__ = ["KINDS", "Edited", "Kind", "Verdict", "judge", "perturbed"]
