"""Things that propose placements.

Belongs here: ``greedy`` (numpy), ``exact`` (CP-SAT), ``milp`` (PuLP), ``decomposed`` (CP-SAT part by part), ``numa``
(zones, ejection chains), ``preempt`` (what running pods go), the partial solution that greedy and decomposition move
(``partial``), the process a solver runs in (``process``, ``fork_server``) with its bound of memory (``memory``), what
they tell each other (``events``), the ranges of what they are given (``search_limits``), the best answer so far
(``incumbent``), and the answer by name where the time is over before there are arrays (``first_fit``).
Does not: judging a placement (``verify``, ``score``), choosing a method or keeping the clock of the whole call
(``solve``). Every method reads a :class:`placer.dense.Dense` and answers with solutions by index; it is never believed:
what it claims is verified and scored by name.
"""

__all__ = ["METHODS"]

#: What ``solve`` takes as ``method``: ``auto``, which is the greedy and then the decomposition, and each by itself.
METHODS = ("auto", "greedy", "exact", "decomposed", "milp")
