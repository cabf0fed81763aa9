"""The cluster: what is read of it, and the only place that talks to it.

Belongs here: lists of objects as an instance (``snapshot``), what of an object is kept (``kept``), names replaced
(``anonymize``), HTTP to an API server (``client``). Does not: what a field means (``kube``, ``instance``), which pod
goes where (``methods``), printing (``cli``).
"""

from placer.cluster.anonymize import anonymized
from placer.cluster.client import Client
from placer.cluster.snapshot import Snapshot, take

__all__ = ["Client", "Snapshot", "anonymized", "take"]
