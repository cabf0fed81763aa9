"""Why a group stays pending: counted where counting is enough, else found by placing the group alone.

Belongs here: one reason per group, in the order of the catalogue (``placer.codes``), every number of which can be
checked by hand. Does not: remedies (``placer.codes``), any proof by a solver.

==========================  ========================================  ========================
code                        found by                                  module
==========================  ========================================  ========================
``InvalidGroup``            the objects                               ``prerequisites``
``GangIncomplete``          counting the pods that exist              ``prerequisites``
``Unsupported``             the pods                                  ``prerequisites``
``NamespaceBudget``         the cost of the namespace's pods          ``prerequisites``
``NoEligibleNode``          counting eligible nodes                   ``cause``
``QueueClosed``             the queues, open and to whom              ``prerequisites``
``QueueCapability``         the queues' room                          ``necessary_conditions``
``InsufficientResources``   room per node, and summed                 ``necessary_conditions``
``TopologyTooNarrow``       room per HyperNode, per domain of labels  ``necessary_conditions``
``PodAffinity``             the greedy, with and without the rule     ``relaxations``
``PodAntiAffinity``         the greedy, with and without the rule     ``relaxations``
``TopologySpread``          the greedy, with and without the rule     ``relaxations``
``Exclusive``               room per domain that no other holds;      ``label_domains``
                            the greedy, with and without the rule     ``relaxations``
``NumaAlignment``           the greedy, with and without the rule     ``relaxations``
``NetworkCost``             the greedy, with and without the rule     ``relaxations``
``Bandwidth``               the greedy, with and without the rule     ``relaxations``
``Outcompeted``             all of these once more, in the cluster    ``explanation``
                            as the placement leaves it
``NotDecided``              none of these                             ``relaxations``
==========================  ========================================  ========================

``next_steps`` asks the same for optional pods of a ready group. Where a rule about calls or zones keeps a group out,
``near_misses`` tells where it comes nearest; for rules about pods around a pod, ``neighbour_words`` names the term and
the holders of each domain.
"""

from placer.reasons.explanation import LATE, reasons

__all__ = ["LATE", "reasons"]
