"""The exact method: one CP-SAT model of counts, solved value after value, with proofs.

Belongs here: what is counted and decided, with the way to solutions and back (``node_sets``, ``variables``); pods that
call each other and NUMA zones (``calls``, ``zones``); the rules (``constraints``, ``neighbour_rows``), the values
(``objective``, O4 of them in ``packing``); the model and its search (``search``); the smaller model where everything is
placed (``pooled_program``, what it counts as one in ``pooled_bundles``, its values in ``pooled_model``); one group
alone (``readiness``); the same with running pods that may be evicted or moved (``disturbing``). Does not: judging a
placement (``verify``, ``score``), bounds without search (``placer.bounds``).
"""
