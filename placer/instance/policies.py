"""The Policy object, defaults filled in."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from placer.instance.policy import LEVELS, Policy
from placer.kube import policy as kube

__all__ = ["read_policy"]


def read_policy(written: Sequence[kube.PolicyManifest]) -> Policy:
    """Read the policy of an instance: the only one there is (reading refuses a second), else the default."""
    spec = written[0].spec if written else None
    return _policy(spec) if spec is not None else Policy()


def _policy(spec: kube.PolicySpec) -> Policy:
    return Policy(
        levels=LEVELS if spec.levels is None else spec.levels,
        network_cost=spec.network_cost or "all",
        network_topology=spec.network.topology if spec.network is not None else None,
        network_weights=spec.network.weights if spec.network is not None else None,
        topology_keys=spec.topology_keys or (),
        locality_all=spec.locality == "all",
        resource_weights={name: Fraction(weight) for name, weight in sorted((spec.resource_weights or {}).items())},
        rules_off=_off(spec.rules) if spec.rules is not None else frozenset(),
    )


def _off(rules: kube.RuleSwitches) -> frozenset[str]:
    written = {"C8": rules.c8, "C9": rules.c9, "C10": rules.c10, "C11": rules.c11}
    return frozenset(rule for rule, value in written.items() if value is not None)
