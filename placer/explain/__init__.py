"""Why a group waits, proved: smallest sets of causes, and changes that were tried.

Belongs here: causes to lift so that a group fits, decided twice; changes of the input that admit it, each tried by
solving again; the same of a job that is not submitted yet, and how many copies of one fit. Does not: the one reason per
group that every answer carries (``placer.reasons``), printing (``placer.cli``).

==================  ==================================================================================
module              task
==================  ==================================================================================
``lifts``           the cluster with one group that waits, and rules lifted for it
``decisions``       whether the group fits there, decided by counting and search, then once more by a solver
``causes``          smallest correction sets
``cases``           an input that can be changed, and its placement
``changes``         changes that may help: of the group (``group_changes``), of its pods (``pod_changes``), of the
                    cluster's other objects (``cluster_changes``), of nodes (``node_changes``), for neighbours
                    (``neighbour_changes``), of running pods (``disruption_changes``)
``shortage_words``  lacks by node and amount
``question``        one group that waits, and the cluster to screen changes in
``explanation``     all of it for each group asked about
``jobs``            a job that is not submitted yet
``prices``          the next step for groups that wait, and its price
==================  ==================================================================================
"""
