"""The cluster: what is read of it, what is to be written, and the only place that talks to it.

Belongs here: lists of objects as an instance (``snapshot``), what of an object is kept (``kept``), names replaced
(``anonymize``), what DaemonSets are about to need (``daemons``), what earlier passes left behind (``cooling``), what to
bind in which order (``plan``), what room there is meanwhile (``ledger``, fed by ``watching``) and whether the other
rules still hold (``rules``), one binding (``bind``), all of them (``apply``), what became of them (``aftermath``), what
is told of it (``telling``, ``volcano``), HTTP to an API server (``client``). Does not: what a field means (``kube``,
``instance``), which pod goes where (``methods``), the order of a pass (``run``), printing (``cli``).
"""

from placer.cluster.anonymize import anonymized
from placer.cluster.client import Client
from placer.cluster.plan import Batch, Bind, Plan, Wait, make_plan
from placer.cluster.snapshot import Identity, Snapshot, take

__all__ = ["Batch", "Bind", "Client", "Identity", "Plan", "Snapshot", "Wait", "anonymized", "make_plan", "take"]
