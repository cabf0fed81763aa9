"""The cluster, by an API server: the only package that talks to one.

* ``cluster.reading``: requests that change nothing, snapshots, and the record of earlier passes.
* ``cluster.planning``: the bindings to make and whether they still may be made, without a request.
* ``cluster.writing``: the Lease, bindings, evictions, status, and the record.

Imports point from writing to planning to reading. Elsewhere: the meaning of fields (``kube``, ``instance``), the
decision (``methods``), the order of a pass (``scheduling_pass``), printing (``cli``).
"""

from placer.passes.cluster.planning.binding_plan import PlannedBinding, plan_bindings
from placer.passes.cluster.reading.anonymize import anonymized
from placer.passes.cluster.reading.client import Client
from placer.passes.cluster.reading.snapshot import Snapshot, take

__all__ = ["Client", "PlannedBinding", "Snapshot", "anonymized", "plan_bindings", "take"]
