"""What a pass needs of a cluster, looked at before there is one: rights, kinds, other schedulers, Lease, clock, memory.

Everything here asks, and changes nothing:

===============  ======================================================================================================
``rights``       which right is needed for what; follows from the options of the pass alone
``checks``       each check with its findings
``schedulers``   those about who else schedules, and Volcano
``memory``       how much a pass takes, and how much there is
``result``       what a check found, and what to do
===============  ======================================================================================================

Does not belong here: how a question is put to a server (``cluster.reading``), printing (``cli``).
"""

from placer.preflight.checks import check_cluster
from placer.preflight.result import CheckResult, CheckState

__all__ = ["CheckResult", "CheckState", "check_cluster"]
