"""Many runs: families over seeds, instances, policies; a line of JSON per run, and what the lines come to.

Belongs here: what to run, and one run in a process of its own with its time and its memory (``runs``), the file of
lines (``records``), on which machine they were made (``machine``), medians and who does better than whom
(``statistics``). Does not: printing and flags (``commands``); how a placement is found (``policies``, ``solve``).

A policy is a name of :data:`placer.laboratory.deciders.NAMES`: another scheduler's, or a method of
:func:`placer.solve`; or it is the reader's own (:mod:`placer.laboratory.own_policies`).
"""
