"""Why a group stays pending: counted where counting is enough, else found by placing the group alone.

Belongs here: one reason per group, in the order of the catalogue (``placer.codes``), every number of which can be
checked by hand.
Does not: what would help (``explain``), any proof by a solver.

==========================  ========================================  ============
code                        found by                                  module
==========================  ========================================  ============
``InvalidGroup``            the objects                               ``standing``
``GangIncomplete``          counting the pods that exist              ``standing``
``Unsupported``             the pods                                  ``standing``
``NoEligibleNode``          counting eligible nodes                   ``eligible``
``QueueCapability``         the queues' room                          ``counting``
``InsufficientResources``   room per node, and summed                 ``counting``
``TopologyTooNarrow``       room per HyperNode                        ``counting``
``NumaAlignment``           the greedy, with and without the rule     ``alone``
``NetworkCost``             the greedy, with and without the rule     ``alone``
``Bandwidth``               the greedy, with and without the rule     ``alone``
``Outcompeted``             all of these once more, in the cluster    ``beside``
                            as the placement leaves it
``NotDecided``              none of these                             ``alone``
==========================  ========================================  ============

Pods left of a group that is ready are optional: ``more`` asks the same of the group with one step more.
"""

from placer.reasons.reasons import reasons

__all__ = ["reasons"]
