"""The closed set of edit kinds: how one file of a tree changes, found by structure and checked on the result."""

from patchstack.edits.model import Conflict, Edit, Merge, Outcome, Rung, Spot, Status

__all__ = ["Conflict", "Edit", "Merge", "Outcome", "Rung", "Spot", "Status"]
