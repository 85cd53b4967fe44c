"""Running code of a tree, or of a stack: with as little as the system lets a process have.

The process that judges never runs such code. Those that do are started here, with an environment of a few variables, a
folder of their own, limits, and without network, other processes and files where the system can take these away.
"""

from patchstack.confine.enter import enter, prepare
from patchstack.confine.environment import scrubbed
from patchstack.confine.model import Cage, Limits, home_folders
from patchstack.confine.probe import probe
from patchstack.confine.report import Confined, note, take

__all__ = [
    "Cage",
    "Confined",
    "Limits",
    "enter",
    "home_folders",
    "note",
    "prepare",
    "probe",
    "scrubbed",
    "take",
]
