"""Other schedulers' greedy, faithfully: what would be placed by the schedulers that people use today.

Belongs here: one loop and one step for a pod over one state (``framework``), and the plug-ins that each policy hands to
them; reading their configuration (``mimicry``, ``faults``). Does not: our own methods (``methods``), judging what comes
out (``verify``, ``score``). Policies mimic: they may break our rules, and what they break is counted by others.

==================  ====================================================================================
policy              plug-ins
==================  ====================================================================================
`as-is`             none: only what is bound
`kube-default`      ``kube``, ``neighbour_filters``, ``resources``
`coscheduling`      the same with ``coscheduling``
`network-overhead`  the same with ``network_aware``
`numa-match`        the same with ``numa_match``
`volcano`           ``volcano``
`volcano-labels`    ``volcano`` with the label plug-in of its design in place of HyperNodes
`kube-preempt`      `kube-default` with ``default_preemption``
`volcano-preempt`   `volcano` with ``volcano.preempt``
==================  ====================================================================================

`network-overhead:TarjanSort` and the like are `network-overhead` with one of the six sorts of AppGroups.
"""
