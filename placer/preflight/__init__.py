"""Checks before a pass, which change nothing: of rights, kinds, Lease, clock and other programs.

Not here: asking a server (``cluster.reading``), printing (``cli``).
"""

from placer.preflight.checks import check_cluster
from placer.preflight.result import CheckResult, CheckState

__all__ = ["CheckResult", "CheckState", "check_cluster"]
