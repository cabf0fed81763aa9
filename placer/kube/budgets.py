"""policy/v1 PodDisruptionBudget: how many pods of an application may be missing at once."""

from __future__ import annotations

from placer.kube.base import Count, LabelSelector, NamespacedObject, Problem, Schema


class BudgetSpec(Schema, frozen=True, kw_only=True):
    """A selector that is left out takes no pod, an empty one every pod of the namespace."""

    selector: LabelSelector | None = None
    min_available: int | str | None = None
    max_unavailable: int | str | None = None

    def __post_init__(self) -> None:
        if self.min_available is not None and self.max_unavailable is not None:
            raise Problem("minAvailable or maxUnavailable", "both")
        for value in (self.min_available, self.max_unavailable):
            if value is not None and amount_of(value, 100) < 0:
                raise Problem("a number of at least 0")


class BudgetStatus(Schema, frozen=True, kw_only=True):
    disruptions_allowed: Count | None = None


class PodDisruptionBudgetManifest(NamespacedObject, frozen=True, kw_only=True):
    spec: BudgetSpec | None = None
    status: BudgetStatus | None = None


def amount_of(value: int | str, whole: int) -> int:
    """A number, or a percentage of ``whole`` rounded up; else :class:`Problem`."""
    if isinstance(value, int):
        return value
    digits, sign, rest = value.partition("%")
    if not (sign and not rest and digits.isascii() and digits.isdigit() and len(digits) < 10):
        raise Problem("a number or a percentage such as 50%", repr(value[:80]))
    return -(-int(digits) * whole // 100)
