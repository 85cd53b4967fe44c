"""Upstream's own grid samplers, as Apple's compiler made them, beside the reference and the stack's."""
