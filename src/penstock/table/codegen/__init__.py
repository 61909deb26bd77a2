"""The compiler of expressions: RexNodes of a plan become nodes, and these become one Python function."""
