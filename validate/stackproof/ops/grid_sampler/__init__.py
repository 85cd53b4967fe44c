"""The proofs of the grid samplers, forward and backward, for any number of spatial dimensions.

A sampler is separable: what it does along one axis does not depend on how many axes there are. So the cases, the
float64 reference and the mirror of the host function are written once, and the number of dimensions follows from the
tensors.
"""
