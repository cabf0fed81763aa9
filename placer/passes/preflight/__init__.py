"""Checks before a pass, which change nothing: of rights, kinds, Lease, clock and other programs.

Not here: asking a server (``cluster.reading``), printing (``cli``).
"""

from placer.passes.preflight.checks import CheckResult, CheckState, check_cluster

__all__ = ["CheckResult", "CheckState", "check_cluster"]
