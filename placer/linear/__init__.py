"""Linear expressions and linear programs in whole numbers, for every solver.

Belongs here: an expression that grows term by term, whatever its variables are; programs over columns and rows, the
bound that prices prove, points of a relaxation. Does not: what columns and rows mean (``bounds``, ``methods``).
"""

from placer.linear.expression import LinearExpression
from placer.linear.program import ColumnSum, IntegerProgram, Relaxed, Row, certified

__all__ = ["ColumnSum", "IntegerProgram", "LinearExpression", "Relaxed", "Row", "certified"]
