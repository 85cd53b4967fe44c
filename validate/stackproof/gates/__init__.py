"""The gates: one folder each, and what they share in ``common``."""
