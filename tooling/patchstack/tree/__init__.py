"""Finding things in source files by structure, and changing bytes without touching their neighbours."""
