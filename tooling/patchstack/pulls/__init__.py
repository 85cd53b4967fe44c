"""What ties a stack to its pull requests: where that was kept, whether it still holds, what will become of each one."""

from patchstack.pulls.fates import Become, PullFate
from patchstack.pulls.links import StackLinks, link_stack

__all__ = ["Become", "PullFate", "StackLinks", "link_stack"]
