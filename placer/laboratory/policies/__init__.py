"""Other schedulers' greedy, faithfully: what would be placed by the schedulers that people use today.

Belongs here: one loop (``loop``), one step for a pod (``step``) over one state, and the plug-ins that each policy
hands to them; reading their configuration (``config``). Does not: our own methods (``methods``), judging what comes out
(``verify``, ``score``). Policies mimic: they may break our rules, and what they break is counted by others.

==================  ====================================================================================
policy              plug-ins
==================  ====================================================================================
`as-is`             none: only what is bound
`kube-default`      ``kube``, ``profile``, ``resources``
`coscheduling`      the same with ``coscheduling``
`network-overhead`  the same with ``topological_sort`` and ``network_overhead``
`numa-match`        the same with ``numa_match``, ``numa_zones``, ``numa_scores``
`volcano`           ``volcano``
`volcano-labels`    ``volcano`` with the label plug-in of its design in place of HyperNodes
==================  ====================================================================================

`network-overhead:TarjanSort` and the like are `network-overhead` with one of the six sorts of AppGroups.
"""

from placer.laboratory.policies.run import POLICIES, SORTED, Mimicry, mimic, run

__all__ = ["POLICIES", "SORTED", "Mimicry", "mimic", "run"]
