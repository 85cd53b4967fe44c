"""The Metal kernels of a macOS wheel of PyTorch, as Apple's compiler left them: read, translated, and run on this host.

A machine without a Mac has no compiler of Apple's, but each macOS wheel carries what that compiler made of every MPS
kernel. That is a yardstick for this project's own Metal headers and kernels, and it shows what upstream's kernels do.
"""
