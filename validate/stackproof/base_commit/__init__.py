"""What a gate finds and the commit below the stack has too: told as a note, in the same way by every gate.

A finding is the base's where the base has it *at the same place* (:mod:`stackproof.base_commit.places`: a definition
and a statement, not a line) and the stack *touches neither the kernel nor the host function behind it*
(:mod:`stackproof.gates.common.touched`). A gate that executes asks the base only about what failed.
"""
