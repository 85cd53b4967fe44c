"""The proof of ``grid_sampler_2d_backward``: its cases, its float64 reference, and how its host function calls it."""
