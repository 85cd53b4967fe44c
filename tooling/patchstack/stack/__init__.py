"""The branch that holds a stack: whose commits it has, and what is recorded of how they were made."""
