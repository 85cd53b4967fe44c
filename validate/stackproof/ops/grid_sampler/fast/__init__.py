"""The fast backward: which kernels a call gets, and the launches that it is made of.

A call is a sequence of launches here, not one: layouts are changed, sums are zeroed and rounded around the kernel that
has the work. How the work is divided follows from layout, number of channels and interpolation alone. The same
sequences run on CPU tensors through the host's kernels and on CUDA tensors through the GPU's.
"""
