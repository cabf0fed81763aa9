"""What a tierName means: one number, or nothing where no tier or more than one has the name (C7)."""

from __future__ import annotations

from collections.abc import Iterable

from placer.instance.findings import Findings

__all__ = ["TierNames"]


class TierNames:
    """Tier names of an instance.

    Parameters
    ----------
    named
        ``(HyperNode, tier, tierName)`` of every HyperNode that was given, sound or not: a broken tree does not change
        what a name means.
    findings
        Takes one finding per name that stands on several tiers.
    """

    def __init__(self, named: Iterable[tuple[str, int, str]], findings: Findings) -> None:
        self._tiers: dict[str, dict[int, str]] = {}
        for hyper_node, tier, name in sorted(named):
            if name:
                self._tiers.setdefault(name, {}).setdefault(tier, hyper_node)
        self._findings = findings
        for name, tiers in self._tiers.items():
            if len(tiers) > 1:
                where = ", ".join(f"{tier} (HyperNode {hyper_node})" for tier, hyper_node in sorted(tiers.items()))
                subject = f"HyperNode {min(tiers.values())}"
                findings.add("TierNameAmbiguous", subject, f"tierName {name} stands on {len(tiers)} tiers: {where}")

    def tier(self, name: str, subject: str) -> int | None:
        """Tier of the name that ``subject`` uses; None, and a finding, where it is unknown or ambiguous."""
        tiers = self._tiers.get(name, {})
        if len(tiers) == 1:
            return next(iter(tiers))
        if tiers:
            numbers = " and ".join(map(str, sorted(tiers)))
            message = f"{subject} names tierName {name}, which stands on tiers {numbers}: it admits nothing"
            self._findings.add("TierNameAmbiguous", subject, message)
        else:
            message = f"{subject} names tierName {name}, which no HyperNode has: it admits nothing"
            self._findings.add("TierNameUnknown", subject, message)
        return None
