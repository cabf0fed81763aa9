"""The cluster: what is read of it, what is to be bound, what is written to it; the only room that talks to it.

======================  ===============================================================================================
``cluster.reading``     HTTP (``client``) and who we are there (``credentials``), names in it (``paths``), views of
                        objects (``views``), which fields are kept (``field_filter``), room for pods of DaemonSets
                        (``daemon_sets``), lists as an instance with it (``snapshot``) and with what earlier passes left
                        behind
                        (``earlier_passes``, ``gang_record``, ``released``), what passes are kept to (``guards``), names
                        replaced (``anonymize``), events of pods and nodes (``watch``), who has gone since
                        (``departures``); what we may do (``access``), who else schedules (``schedulers``)
``cluster.planning``    No request is made here: what to bind in which order (``binding_plan``), pods and nodes as they
                        are, with the room they leave (``scheduler_cache``), and the other rules (``rule_checks``), what
                        became of a gang (``gang_outcome``), what becomes of one that is half-bound (``half_bound``),
                        whether what is left of a placement that disturbs holds (``disruption_plan``), room for pods
                        that are moved (``reservations``)
``cluster.writing``     who may write (``lease``), one binding (``binding``), what releases a pod in its place
                        (``release``), all of a plan (``plan_execution``), what the scheduler cache hears of meanwhile
                        (``cache_feed``), gangs that are half-bound (``gang_ledger``, ``rolling_back``), one eviction
                        (``eviction``), those of a plan and the nodes that are nominated (``making_room``), conditions,
                        Events and status (``status_writer``, ``pod_group_status``, ``volcano_pod_groups``,
                        ``upstream_pod_groups``), and when a server is left alone (``breaker``)
======================  ===============================================================================================

Imports point from writing to planning to reading. Does not belong here: what a field means (``kube``, ``instance``),
which pod goes where (``methods``), the order of a pass (``scheduling_pass``), printing (``cli``).
"""

from placer.cluster.planning.binding_plan import PlannedBinding, plan_bindings
from placer.cluster.reading.anonymize import anonymized
from placer.cluster.reading.client import Client
from placer.cluster.reading.snapshot import Snapshot, take

__all__ = ["Client", "PlannedBinding", "Snapshot", "anonymized", "plan_bindings", "take"]
