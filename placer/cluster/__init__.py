"""The cluster: what is read of it, what is to be bound, what is written to it; the only room that talks to it.

======================  ===============================================================================================
``cluster.reading``     HTTP (``client``), views of objects (``views``), which fields are kept (``field_filter``), lists
                        as an instance (``snapshot``) with room for pods of DaemonSets (``daemon_sets``) and with what
                        earlier passes left behind (``earlier_passes``), names replaced (``anonymize``), events of pods
                        and nodes (``watch``)
``cluster.planning``    No request is made here: what to bind in which order (``binding_plan``), pods and nodes as they
                        are (``scheduler_cache``) with the room they leave (``node_room``) and the other rules
                        (``rule_checks``), what became of a gang (``gang_outcome``)
``cluster.writing``     one binding (``binding``), all of a plan (``plan_execution``), conditions, Events and status
                        (``status_writer``, ``volcano_pod_groups``)
======================  ===============================================================================================

Imports point from writing to planning to reading. Does not belong here: what a field means (``kube``, ``instance``),
which pod goes where (``methods``), the order of a pass (``scheduling_pass``), printing (``cli``).
"""

from placer.cluster.planning.binding_plan import Batch, BindingPlan, PlannedBinding, WaitFor, plan_bindings
from placer.cluster.reading.anonymize import anonymized
from placer.cluster.reading.client import Client
from placer.cluster.reading.snapshot import Identity, Snapshot, take

__all__ = [
    "Batch",
    "BindingPlan",
    "Client",
    "Identity",
    "PlannedBinding",
    "Snapshot",
    "WaitFor",
    "anonymized",
    "plan_bindings",
    "take",
]
