"""Forward and backward compatibility of operator schemas, and the two-week window, as verdicts."""

from stackproof.compat.gate import FcWindowGate

__all__ = ["FcWindowGate"]
