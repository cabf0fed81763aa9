"""Things that propose placements: ``greedy`` (numpy), ``exact`` (CP-SAT), ``milp`` (PuLP), ``decomposed`` (CP-SAT part
by part), ``numa`` (zones), ``preempt`` (who leaves).

Every method reads a :class:`placer.arrays.Dense` and answers with solutions by index, which are verified and scored by
name. They share the partial solution (``partial``), the process a solver runs in (``process``, ``fork_server``,
``memory``), its ``events`` and ``search_limits``, the ``incumbent``, and ``answer_by_name`` where the time is over
before there are arrays.
"""

__all__ = ["METHODS"]

#: What ``solve`` takes as ``method``: ``auto``, which is the greedy and then the decomposition, and each by itself.
METHODS = ("auto", "greedy", "exact", "decomposed", "milp")
