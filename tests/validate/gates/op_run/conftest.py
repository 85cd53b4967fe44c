"""What the tests of op-run need of the machine."""

from host_compiler import compiler

__all__ = ["compiler"]
