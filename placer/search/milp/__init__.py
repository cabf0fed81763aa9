"""The MILP method: the exact model as a mixed-integer linear program in PuLP, for solvers of your own.

``models/milp.md`` says how rows get literals, and numbers that doubles can hold.
"""
