"""An incremental build of a PyTorch checkout on macOS."""
