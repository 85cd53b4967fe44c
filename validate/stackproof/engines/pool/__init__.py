"""Worker processes: confined, with time limits, and with a report of what they did last."""
