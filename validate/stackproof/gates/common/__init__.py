"""What several gates share: what a stack touches, and how scenarios are run, collected and judged."""
