"""How the grid samplers are called through PyTorch's public interface on the stand-in device."""
