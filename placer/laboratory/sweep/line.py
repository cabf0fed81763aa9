"""One run in figures: a line of JSON, and how such a line is read back."""

from __future__ import annotations

import json
from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from placer.document import ValuePart
from placer.result import Termination, Verdict

__all__ = ["KEY", "Key", "Line"]

#: What tells two runs apart: instance, seed, policy, limit, workers, version, config.
Key = tuple[str, int, str, float, int, str, str]
#: ... and their names.
KEY = ("instance", "seed", "policy", "limit", "workers", "version", "config")


class Line(BaseModel):
    """What one run came to; null is what is not known, all of the second part where ``error`` says why.

    Weights are ``weight`` of a Placement: placed weight of all priorities as one sum, in micro-nodes.

    Parameters
    ----------
    instance
        Family with its options, or path, as it was typed.
    seed
        Of the family's chance; of the policy's or the solver's where the instance is in files.
    policy
        What decided: a policy or a method.
    limit
        Seconds of the whole call of a method.
    workers
        Solver threads of a method.
    version
        Of placer.
    config
        First digits of the SHA-256 of the policy's configuration; empty: its defaults.
    nodes, pending
        Nodes and pending pods of the instance.
    placed_pods
        How many of these got a node.
    planted_weight, placed_weight
        Of the planted placement, where there is one, and of the one found.
    placed_over_planted
        Their quotient; above 1 where priorities, or jobs beyond the planted ones, let more be placed than was planted.
    weight_bound, weight_gap, weight_proved_by
        What no placement exceeds; |bound - value| / max(1, |value|); who proved it.
    objective
        Values, bounds and gaps in the order they are compared.
    violations
        Rule to how often it is broken; only what is broken, which methods never do.
    verdict, termination
        As in a Placement; of a policy that breaks a rule there is no verdict.
    seconds_to_first
        From the beginning of the call to its first answer; not of a policy, which has one answer.
    seconds
        Of the whole call, reading to writing.
    peak_memory_mib
        The most that the process and the ones it started held at once, in MiB: the sum of their high-water marks.
    notes
        What the configuration of a policy says and is not mimicked.
    error
        Why there is no result, or why it cannot be trusted.
    """

    model_config = ConfigDict(frozen=True, alias_generator=to_camel, populate_by_name=True)

    instance: str
    seed: int
    policy: str
    limit: float
    workers: int
    version: str
    config: str

    nodes: int | None = None
    pending: int | None = None
    placed_pods: int | None = None
    planted_weight: int | None = None
    placed_weight: int | None = None
    placed_over_planted: float | None = None
    weight_bound: int | None = None
    weight_gap: float | None = None
    weight_proved_by: str | None = None
    objective: list[ValuePart] = []
    violations: dict[str, int] = {}
    verdict: Verdict | None = None
    termination: Termination | None = None
    seconds_to_first: float | None = None
    seconds: float | None = None
    peak_memory_mib: float | None = Field(default=None, alias="peakMemoryMiB")
    notes: list[str] = []
    error: str | None = None

    @property
    def key(self) -> Key:
        """What tells it apart."""
        return self.instance, self.seed, self.policy, self.limit, self.workers, self.version, self.config

    def as_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON, names in camel case."""
        return self.model_dump(mode="json", by_alias=True)

    def text(self) -> str:
        """One line of JSON, without its end."""
        return json.dumps(self.as_dict())
