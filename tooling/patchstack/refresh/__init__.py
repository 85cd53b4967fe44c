"""From amended commits back to the series that made them."""
