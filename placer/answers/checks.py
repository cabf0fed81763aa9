"""What every answer is held against: the rules, and the values there would be if all pods were placed."""

from __future__ import annotations

from placer.base.errors import VerificationFailed
from placer.problem import Instance
from placer.problem.placement import Placement, Value
from placer.rules import verify


def checked(instance: Instance, placement: Placement, method: str) -> None:
    """Refuse a placement of ``method`` that breaks a rule."""
    broken = verify(instance, placement)
    if broken:
        raise VerificationFailed.of(method, [violation.message for violation in broken])


def of_all_pods(instance: Instance, value: Value) -> int:
    """A value of what is placed, if all pending pods were."""
    groups = (group for group in instance.groups.values() if group.priority == value.priority)
    if value.name == "admitted":
        return sum(instance.need_weights[group.key] for group in groups)
    return sum(instance.weights[pod] for group in groups for pod in group.pending)
