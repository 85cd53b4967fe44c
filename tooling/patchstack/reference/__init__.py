"""Reference trees: real PyTorch releases as git repositories, for trying a series without a clone of PyTorch."""

from patchstack.reference.build import build_reference, is_known, reference_wheel
from patchstack.reference.model import Progress, ReferenceSpec, ReferenceTree
from patchstack.reference.registry import SPECS

__all__ = ["SPECS", "Progress", "ReferenceSpec", "ReferenceTree", "build_reference", "is_known", "reference_wheel"]
