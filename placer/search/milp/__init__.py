"""The MILP method: the rules a second time, as a mixed-integer linear program in PuLP, to keep the first one honest.

Nothing comes from ``exact``, whose bundles and places would carry a mistake over; ``models/milp.md`` has the
formulation.
"""
