"""An incremental PyTorch build of the stack on a Mac: planned anywhere, run there."""
