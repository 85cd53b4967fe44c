"""What a moving upstream did to a series: which commit broke an anchor or changed a state, and since when.

A series that applied last month and does not today was broken by one of a few thousand commits, of which a few dozen
touch its files. This package finds the one, by planning the series again on some of the trees in between. It only
reads: no ref, object or file of the checkout changes.
"""

from patchstack.drift.find import DEFAULT_VISITS, find_drift
from patchstack.drift.model import ChangeDrift, Drift, Turn, Verdict

__all__ = ["DEFAULT_VISITS", "ChangeDrift", "Drift", "Turn", "Verdict", "find_drift"]
