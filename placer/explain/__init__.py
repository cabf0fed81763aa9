"""Why a group waits, proved: smallest sets of causes, and changes that were tried.

Belongs here: what must be lifted for a group to fit, decided twice; what of the input could be changed so that it is
admitted, each change tried by solving again; the same of a job that is not submitted yet, and how many copies of one
fit. Does not: the one reason per group that every answer carries (``placer.reasons``), how all this is printed
(``placer.cli``).

==================  ==================================================================================
module              what it does
==================  ==================================================================================
``lifts``           the cluster with one group that waits, and rules set aside for it
``decisions``       whether the group fits there, decided by counting and search, then once more by a solver
``causes``          smallest correction sets
``cases``           an input that can be changed, and what placing it anew gives
``changes``         changes that may help: of the group (``group_changes``), of its pods (``pod_changes``), of the
                    cluster's other objects (``cluster_changes``), of nodes (``node_changes``), for neighbours
                    (``neighbour_changes``), of what runs (``disruption_changes``)
``shortage_words``  what there is too little of, by node and amount
``question``        what is asked, from the command's arguments
``explanation``     all of it for each group asked about
``jobs``            a job that is not submitted yet
``prices``          the next step for groups that wait, and what must go for it
==================  ==================================================================================
"""
