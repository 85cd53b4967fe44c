"""An incremental PyTorch build of the stack on a Mac: planned anywhere, run there."""

from stackproof.build.folder import BuiltTree, built_tree

__all__ = ["BuiltTree", "built_tree"]
