"""From a conflict to a stack and a series that knows the answer: resolve in a worktree, go on, learn."""
