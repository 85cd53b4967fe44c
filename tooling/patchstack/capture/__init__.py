"""From commits to a series: each commit becomes a change, and its diff the most durable edits that reproduce it."""
