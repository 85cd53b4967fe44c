"""What ties a stack to its pull requests: where that was kept, whether it still holds, what will become of each one."""

from patchstack.pulls.links import StackLinks, link_stack
from patchstack.pulls.outcomes import PullAction, PullOutcome

__all__ = ["PullAction", "PullOutcome", "StackLinks", "link_stack"]
