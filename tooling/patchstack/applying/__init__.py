"""From a plan to commits on one branch: objects first, one ref last."""
