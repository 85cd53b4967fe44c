"""From a series and a tree to a plan; pure, nothing is written."""

from patchstack.planning.model import ChangePlan, ChangeState, EditPlan, StackPlan
from patchstack.planning.planner import plan_stack

__all__ = ["ChangePlan", "ChangeState", "EditPlan", "StackPlan", "plan_stack"]
