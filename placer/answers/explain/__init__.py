"""Why a group waits, proved: smallest sets of causes, and changes of the input that were tried.

Belongs here: the proofs, the changes, the same of a job that is not submitted, how many copies fit. Does not: the one
reason per group of every answer (``placer.answers.reasons``), printing (``placer.cli``).
"""
