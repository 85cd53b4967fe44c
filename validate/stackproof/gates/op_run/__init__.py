"""The gate "op-run": whatever op a stack touches, proved on the stand-in device with nothing written by the user.

What an op is called with is recorded from PyTorch's own OpInfo samples, in forward and backward passes on the CPU.
These calls are repeated on the device in every dtype and in other layouts, and compared with float64.
"""
