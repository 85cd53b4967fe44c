"""Turn an out-of-tree change to PyTorch into a ghstack-ready commit stack.

The package is the applier half of the project: a declarative series (``patches/``) and the text that lands
(``aten_overlay/``) become a plan over one PyTorch tree, and the plan becomes commits on one branch.
"""

__version__ = "0.1.0"
