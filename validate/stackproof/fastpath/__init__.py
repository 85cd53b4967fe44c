"""The stack's kernels on an Apple GPU without any build: a stock torch wheel compiles them and calls them.

``torch.mps.compile_shader`` takes Metal source, and ``torch.library`` takes a backward written in Python for the MPS
key. So the kernels, and autograd on top of them, can be tried within a minute of checking the stack out. What is left
out is the Objective-C++ host function, which only a build has.
"""

from stackproof.fastpath.device import MpsDevice, StandInDevice
from stackproof.fastpath.run import run_on, run_on_mps

__all__ = ["MpsDevice", "StandInDevice", "run_on", "run_on_mps"]
