"""The Placement document (models/interface.md): its schema, how a result becomes one, and how one is read back."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from placer.base.version import __version__
from placer.problem import Group, Instance, Key, SubGroup
from placer.problem.disruption import Disruption
from placer.problem.outcome import Outcome
from placer.problem.placement import Placement, Score
from placer.problem.result import Bound, Judged, Reason, Result, Termination, Verdict

if TYPE_CHECKING:
    from placer.kube.manifests import Text


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """A field with a default is left out where it has nothing to say."""

    def as_dict(self) -> dict[str, Any]:
        plain: dict[str, Any] = msgspec.to_builtins(self)
        return plain


class SetAsidePart(_Part, frozen=True, kw_only=True):
    """Skipped input, and work that is suspended or gated, a sentence each."""

    other_schedulers: dict[str, int]
    gated: int
    kinds_not_read: dict[str, int]
    not_there_yet: tuple[str, ...] = ()


class InstancePart(_Part, frozen=True, kw_only=True):
    """The decided input; ``sha256`` of the text that was read, and the counts of its objects.

    ``unsupported`` counts the pods that wait for ``Unsupported``. ``schedulerName``: whose pending pods are counted;
    null: those of any scheduler.
    """

    sha256: str
    nodes: int
    pods: int
    pending: int
    unsupported: int | msgspec.UnsetType = msgspec.UNSET  # documents of before have none
    groups: int
    hyper_nodes: int
    scheduler_name: str | None
    set_aside: SetAsidePart


class LimitsPart(_Part, frozen=True, kw_only=True):
    """The limits of the call; null: none."""

    seconds: float | None
    work: float | None


class ValuePart(_Part, frozen=True, kw_only=True):
    """One value of the objective; ``bound``, ``gap`` and ``provedBy`` are null where nothing is proved."""

    name: str
    priority: int | None = None
    value: int
    bound: int | None
    gap: float | None
    proved_by: str | None

    @classmethod
    def of(cls, judged: Judged) -> ValuePart:
        """Write a value with what is proved of it."""
        return cls(name=judged.value.name, priority=judged.value.priority, **_numbers(judged))


class WeightPart(_Part, frozen=True, kw_only=True):
    """Placed weight of all priorities as one sum."""

    value: int
    bound: int | None
    gap: float | None
    proved_by: str | None

    @classmethod
    def of(cls, judged: Judged) -> WeightPart:
        """Write a weight with what is proved of it."""
        return cls(**_numbers(judged))


class BindingPart(_Part, frozen=True, kw_only=True):
    """One pod and its node; ``numaZones`` only where C10 applies."""

    namespace: str
    pod: str
    node: str
    numa_zones: list[str] | None = None


class EvictionPart(_Part, frozen=True, kw_only=True):
    """A running pod that is evicted and waits like any other; ``unit`` is evicted with it (D1)."""

    namespace: str
    pod: str
    node: str
    unit: str
    priority: int


class MovePart(_Part, frozen=True, kw_only=True):
    """A running pod that goes from a node and is bound to another."""

    namespace: str
    pod: str
    source: str = msgspec.field(name="from")
    to: str
    unit: str
    numa_zones: list[str] | None = None


class StepPart(_Part, frozen=True, kw_only=True):
    """First some pods go, then some are bound, each ``NAMESPACE/NAME`` (D5)."""

    go: list[str]
    bind: list[str]


class SubGroupPart(_Part, frozen=True, kw_only=True):
    """A subgroup after the placement."""

    name: str
    placed: int
    tier: int | None
    hyper_node: str | None


class ReasonPart(_Part, frozen=True, kw_only=True):
    """Why pods of the group are pending."""

    code: str
    message: str


class GroupPart(_Part, frozen=True, kw_only=True):
    """A group that had a pending pod."""

    kind: Literal["PodGroup", "Pod"]
    namespace: str
    name: str
    priority: int | msgspec.UnsetType = msgspec.UNSET  # documents of before have none
    admitted: bool
    placed: int
    pending: int
    tier: int | None
    hyper_node: str | None
    sub_groups: list[SubGroupPart]
    reason: ReasonPart | None


class FindingPart(_Part, frozen=True, kw_only=True):
    """Something in the input that cannot be as meant."""

    code: str
    object: str
    message: str


class TracePart(_Part, frozen=True, kw_only=True):
    """The answer or a bound got better; values and bounds in the order of ``objective``."""

    seconds: float
    phase: str
    values: list[int]
    bounds: list[int | None]


class SecondsPart(_Part, frozen=True, kw_only=True):
    """Wall clock by step."""

    read: float
    build: float
    solve: float
    verify: float
    total: float


class PlacementDocument(_Part, frozen=True, kw_only=True):
    """A Placement as ``placer solve -o`` writes it."""

    api_version: Literal["placer.dev/v1alpha1"]
    kind: Literal["Placement"]
    instance: InstancePart
    method: str
    seed: int
    limits: LimitsPart
    termination: Termination
    verdict: Verdict
    objective: list[ValuePart]
    weight: WeightPart
    bindings: list[BindingPart]
    one_by_one: list[str]
    groups: list[GroupPart]
    lost: list[str] | None = None
    wanted: list[dict[str, Any]] | None = None
    freed: list[str] | None = None
    evictions: list[EvictionPart] | None = None
    moves: list[MovePart] | None = None
    steps: list[StepPart] | None = None
    findings: list[FindingPart]
    trace: list[TracePart]
    seconds: SecondsPart
    versions: dict[str, str]


class NextStepPart(_Part, frozen=True, kw_only=True):
    """The next command for a group that waits, and its price; null where the price is not known."""

    command: str
    evicted: int | None = None
    moved: int | None = None
    message: str


class QueueItem(_Part, frozen=True, kw_only=True):
    """A group that waits or was just placed; ``pods`` and ``gpus`` of its pods that wait, else of those just placed.

    ``age`` is a duration as Kubernetes writes it; ``words`` are the reason, or where its pods were placed.
    """

    namespace: str
    name: str
    kind: Literal["PodGroup", "Pod"]
    priority: int
    queue: str | None
    pods: int
    gpus: int
    creation_timestamp: str | None
    age: str | None
    admitted: bool
    reason: ReasonPart | None
    words: str
    next: NextStepPart | None = None

    def with_next(self, step: NextStepPart | None) -> QueueItem:
        """The same with a next step."""
        return msgspec.structs.replace(self, next=step)


class QueueListDocument(_Part, frozen=True, kw_only=True):
    """Groups that wait or fit now, the most urgent and the oldest first: ``placer queue --json``."""

    api_version: Literal["placer.dev/v1alpha1"]
    kind: Literal["QueueList"]
    items: list[QueueItem]


class CostItem(_Part, frozen=True, kw_only=True):
    """The costs of one namespace; ``share`` is the largest part that it spends of a budget."""

    namespace: str
    pending: int
    waiting: int
    daemons: int
    terms: int
    resources: int
    bytes: int
    share: float


class CostListDocument(_Part, frozen=True, kw_only=True):
    """The costs of namespaces, the dearest first: ``placer queue --cost --json``; null: no budget."""

    api_version: Literal["placer.dev/v1alpha1"]
    kind: Literal["NamespaceCostList"]
    budget: dict[str, int] | None
    items: list[CostItem]


def placement_document(result: Result, versions: Mapping[str, str] | None = None) -> PlacementDocument:
    """Make the document of a result; without ``versions`` it names those in use."""
    instance = result.instance
    placement = result.placement or Placement()
    disruption = Disruption(instance, placement)
    outcome = disruption.outcome
    return PlacementDocument(
        api_version="placer.dev/v1alpha1",
        kind="Placement",
        instance=InstancePart(
            sha256=instance.digest,
            nodes=len(instance.nodes),
            pods=len(instance.pods),
            pending=len(instance.pending),
            unsupported=result.unsupported,
            groups=len(instance.groups),
            hyper_nodes=len(instance.topology.hyper_nodes),
            scheduler_name=instance.scheduler_name,
            set_aside=set_aside(instance),
        ),
        method=result.method,
        seed=result.seed,
        limits=LimitsPart(seconds=result.time_limit, work=result.work_limit),
        termination=result.termination,
        verdict=result.verdict,
        objective=[ValuePart.of(judged) for judged in result.objective],
        weight=WeightPart.of(result.weight),
        bindings=[
            BindingPart(
                namespace=binding.pod.namespace,
                pod=binding.pod.name,
                node=binding.node,
                numa_zones=list(binding.numa_zones) or None,
            )
            for binding in placement.bindings
        ],
        one_by_one=list(placement.one_by_one),
        groups=[
            _group(outcome, outcome.instance.groups[key], result.reasons.get(key), disruption.gone)
            for key, group in instance.groups.items()
            if group.pending
        ],
        **_asked(placement),
        **_disturbed(disruption),
        findings=msgspec.convert(result.findings, list[FindingPart], from_attributes=True),
        trace=msgspec.convert(result.trace, list[TracePart], from_attributes=True),
        seconds=SecondsPart(**result.seconds),
        versions=_versions() if versions is None else dict(versions),
    )


def _asked(placement: Placement) -> dict[str, Any]:
    wanted = [msgspec.json.decode(each) for each in placement.wanted]
    parts = {"lost": list(placement.lost), "wanted": wanted, "freed": list(placement.freed)}
    return {name: part for name, part in parts.items() if part}


def _disturbed(disruption: Disruption) -> dict[str, Any]:
    placement, pods = disruption.placement, disruption.instance.pods
    if not placement.disturbs:
        return {}
    unit_of = {key: unit for unit in disruption.units for key in unit.pods}
    return {
        "evictions": [
            EvictionPart(
                namespace=key.namespace,
                pod=key.name,
                node=pods[key].node or "",
                unit=unit_of[key].name,
                priority=unit_of[key].priority,
            )
            for key in placement.evictions
        ],
        "moves": [
            MovePart(
                namespace=move.pod.namespace,
                pod=move.pod.name,
                source=pods[move.pod].node or "",
                to=move.node,
                unit=unit_of[move.pod].name,
                numa_zones=list(move.numa_zones) or None,
            )
            for move in placement.moves
        ],
        "steps": [StepPart(go=list(map(str, step.go)), bind=list(map(str, step.bind))) for step in placement.steps],
    }


def _versions() -> dict[str, str]:
    """To find versions in use takes longer than to decide a small instance."""
    from importlib import metadata

    return {"placer": __version__, "ortools": metadata.version("ortools")}


def read_back(written: Mapping[str, Any]) -> PlacementDocument | None:
    """Read a document back from plain data; None where it is not a whole one, such as bindings by themselves."""
    known = {field.encode_name for field in msgspec.structs.fields(PlacementDocument)}
    try:
        return msgspec.convert({key: value for key, value in written.items() if key in known}, PlacementDocument)
    except msgspec.ValidationError:
        return None


def statement(text: Text) -> PlacementDocument | None:
    """Read a Placement besides its bindings; None where it is none of placer's, or not the only one."""
    from placer.kube.manifests import split

    raws = split([text])
    if len(raws) != 1 or raws[0].kind != "Placement":
        return None
    value: dict[str, Any] = msgspec.json.decode(raws[0].text)
    return read_back(value)


def stated_bounds(said: PlacementDocument, values: Score) -> tuple[Bound | None, ...]:
    """Read the bounds that a Placement states, each for the very value that it is stated for."""
    bounds = {
        (part.name, part.priority, part.value): Bound(part.bound, part.proved_by or "")
        for part in said.objective
        if part.bound is not None
    }
    return tuple(bounds.get((each.name, each.priority, each.value)) for each in values)


def stated_weight_bound(said: PlacementDocument) -> Bound | None:
    """Read the bound of the placed weight that a Placement states."""
    return None if said.weight.bound is None else Bound(said.weight.bound, said.weight.proved_by or "")


def set_aside(instance: Instance) -> SetAsidePart:
    """Count what is not decided upon."""
    return SetAsidePart(
        other_schedulers=dict(instance.set_aside.other_schedulers),
        gated=instance.set_aside.gated,
        kinds_not_read=dict(instance.skipped),
        not_there_yet=instance.absent_work,
    )


def _numbers(judged: Judged) -> dict[str, Any]:
    bound = judged.bound
    return {
        "value": judged.value.value,
        "bound": None if bound is None else bound.value,
        "gap": None if judged.gap is None else round(judged.gap, 6),
        "proved_by": None if bound is None else bound.by,
    }


def _group(outcome: Outcome, group: Group, reason: Reason | None, gone: Collection[Key]) -> GroupPart:
    new = outcome.added(group.pending)
    waiting = [key for key in group.pending if key not in gone or key in outcome.new]
    tier, hyper_node = outcome.common(group.topology, (*group.bound, *new))
    return GroupPart(
        kind="PodGroup" if group.key.api_group else "Pod",
        namespace=group.key.namespace,
        name=group.key.name,
        priority=group.priority,
        admitted=outcome.admitted(group),
        placed=len(group.bound) + len(new),
        pending=len(waiting) - len(new),
        tier=tier,
        hyper_node=hyper_node,
        sub_groups=[_sub_group(outcome, group, part) for part in group.sub_groups],
        reason=None if reason is None else ReasonPart(code=reason.code, message=reason.message),
    )


def _sub_group(outcome: Outcome, group: Group, part: SubGroup) -> SubGroupPart:
    placed = (*part.bound, *outcome.added(part.pending))
    tier, hyper_node = outcome.common(group.policies[part.policy].topology, placed)
    return SubGroupPart(name=part.name, placed=len(placed), tier=tier, hyper_node=hyper_node)


def bindings_document(placement: Placement) -> dict[str, Any]:
    """Make the v1 List of v1 Bindings of a placement, in plan order; of one that disturbs something a Placement."""
    if placement.disturbs:
        return {
            "apiVersion": "placer.dev/v1alpha1",
            "kind": "Placement",
            "bindings": [_named(each.pod) | {"node": each.node} for each in placement.bindings],
            "evictions": [_named(each) for each in placement.evictions],
            "moves": [_named(each.pod) | {"to": each.node} for each in placement.moves],
            "steps": [{"go": [*map(str, each.go)], "bind": [*map(str, each.bind)]} for each in placement.steps],
            **_asked(placement),
        }
    return {
        "apiVersion": "v1",
        "kind": "List",
        "items": [
            {
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": {"namespace": binding.pod.namespace, "name": binding.pod.name},
                "target": {"apiVersion": "v1", "kind": "Node", "name": binding.node},
            }
            for binding in placement.bindings
        ],
    }


def _named(pod: Key) -> dict[str, str]:
    return {"namespace": pod.namespace, "pod": pod.name}
