"""Which running pods go for groups that wait: the least, by the values of models/README.md, D1 to D5.

====================  ================================================================================================
module                what it does
====================  ================================================================================================
``lifting``           the instance in which everything that may be disturbed waits twice: to stay, and to be moved
``plans``             from a solution of that instance to evictions, moves and steps
``contraction``       a domain as it is, and all beyond it as one node: what must go there is a bound
``domains``           one group, domain by domain: victims, what carries them out, and the least over domains
``domain_sets``       nodes of each domain that a group could be in
``fewest_evictions``  what several groups cost at least, by counting on each resource
``knapsack``          the most that a domain gains by evictions of no more than so much in all
``equal_groups``      several equal groups, each in a domain of its own: the least by counting
``emptying``          domains of a tier that are to be empty: which, cheapest first, or the whole model
``construction``      first plans without a search: the cheapest domain of each group, receivers by best fit
``first_plan``        the same as placements that keep the rules, before any process is started
``method``            all groups that wait: without disturbing, by the greedy, group by group, by the whole model if
small
====================  ================================================================================================

The model that decides is in :mod:`placer.search.exact.disturbing`. Does not belong here: judging (``verify``,
``score``), the clock of the whole call (``placer.preempt``).
"""
