"""How a series is written down: YAML mappings that keep their lines, and the text that lands."""
