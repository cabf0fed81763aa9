"""Objects of a tenant who means harm: none ends a pass, closes the nodes of others, or takes their time."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from placer.passes.cluster.planning.binding_plan import PlannedBinding
from placer.passes.cluster.planning.gang_outcome import GangOutcome, GangState
from placer.passes.cluster.writing import rolling_back, status_writer
from placer.passes.cluster.writing.lease import NoElection
from placer.passes.cluster.writing.status_writer import StatusReport
from placer.passes.scheduling_pass import Pass, PassOptions
from placer.problem import GroupKey, Key
from tests.cluster.snapshots import ListServer, snapshot_of
from tests.cluster.test_any_object import ALL_GOOD, PODS, Double, a_pass, good, good_ones, pass_at
from tests.cluster.things import live_pod
from tests.netdocs import app_group, call
from tests.support import Document, node, pod_group

EVIL = "evil"


def _affinity(terms: int) -> dict[str, Any]:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{}] * terms}}
    return {"affinity": {"nodeAffinity": required}}


def _app_group(name: str) -> Document:
    """An AppGroup that cannot be read."""
    return app_group(name, {"p": [call("p", bandwidth="-1")]}, namespace=EVIL, numMembers=1)


def _holding(resource: str, amount: str) -> list[Document]:
    """Pods that run on both nodes of the others, where their author put them."""
    containers = [{"name": "main", "resources": {"requests": {resource: amount}}}]
    return [live_pod(f"on-{name}", namespace=EVIL, node=name, spec={"containers": containers}) for name in NODES]


def _many(count: int, spec: dict[str, Any]) -> list[Document]:
    """Pods that all say so much; the server of Kubernetes bounds an object's bytes, and none of these lists."""
    return [live_pod(f"odd-{number}", namespace=EVIL, cpu=1, spec=spec) for number in range(count)]


def _terms(kind: str, count: int) -> dict[str, Any]:
    asked = [{"topologyKey": f"k{at}", "labelSelector": {"matchLabels": {"app": f"v{at}"}}} for at in range(count)]
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": asked}}}


def _spread(count: int) -> dict[str, Any]:
    said = {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"app": "odd"}}}
    return {"topologySpreadConstraints": [{**said, "topologyKey": f"k{at}"} for at in range(count)]}


NODES = ("good-a", "good-b")
HARM: dict[str, list[Document]] = {
    "values without end in a pod": [live_pod("odd", namespace=EVIL, cpu=1, spec=_affinity(600_000))],
    "values without end in a PodGroup": [
        pod_group("odd", namespace=EVIL, minMember=1, subGroupPolicy=[{}] * 600_000),
        live_pod("odd", namespace=EVIL, group="odd", cpu=1),
    ],
    "many objects with many values": [
        live_pod(f"odd-{number}", namespace=EVIL, cpu=1, spec=_affinity(700)) for number in range(1_500)
    ],
    "policies for subgroups without end": [
        pod_group(
            "odd",
            namespace=EVIL,
            minMember=1,
            subGroupPolicy=[{"name": f"part-{number}", "matchLabelKeys": ["a"]} for number in range(10_000)],
        ),
        *(live_pod(f"odd-{number}", namespace=EVIL, group="odd", cpu=1) for number in range(50)),
    ],
    "spread constraints without end": _many(100, _spread(3_000)),
    "pod anti-affinity without end": _many(100, _terms("podAntiAffinity", 3_000)),
    "a pod on each node with more of what no node has than there can be": _holding("example.com/odd", "1e30"),
}


@pytest.mark.parametrize("case", HARM)
def test_all_others_are_bound(case: str) -> None:
    """In seconds; it was minutes without a bound."""
    server, done = a_pass([*good(), *HARM[case]], [])
    assert done.result is not None
    assert good_ones(server) == ALL_GOOD


def test_more_than_there_can_be_of_what_a_node_has_fills_it() -> None:
    server, done = a_pass([*good(), *_holding("cpu", "1e30")], [])
    assert done.result is not None
    assert good_ones(server) == set()


def test_an_app_group_that_cannot_be_read_keeps_back_who_names_it_and_nobody_who_bears_its_name_elsewhere() -> None:
    named, bearing = good(), good()
    for each in named:
        if each["kind"] == "Pod":
            each["metadata"]["labels"] = {"appgroup.diktyo.x-k8s.io": "web"}
    for each in bearing:
        if each["kind"] == "Pod":
            each["metadata"]["labels"] = {"app": "web"}
    assert good_ones(a_pass([*named, _app_group("web")], [])[0]) == set()
    assert good_ones(a_pass([*bearing, _app_group("web")], [])[0]) == ALL_GOOD


@pytest.mark.parametrize("kind", ["Pod", "PodGroup", "AppGroup"])
def test_who_writes_that_an_object_cannot_be_read_is_not_believed(kind: str) -> None:
    """Or a pod on a node would leave its gang, and what depends on an object of the name would wait."""
    notes = {"placer.dev/unreadable": "so I say", "placer.dev/resource-versions": "{}", "placer.dev/snapshot": "me"}
    app_group = _app_group("web")
    app_group = {**app_group, "spec": {**app_group["spec"], "workloads": []}}
    odd = [pod_group("odd", namespace=EVIL, minMember=1), live_pod("odd", namespace=EVIL, group="odd", cpu=1)]
    documents = [
        {**each, "metadata": {**each["metadata"], "annotations": {**each["metadata"].get("annotations", {}), **notes}}}
        if each["kind"] == kind
        else each
        for each in [*good(), *odd, app_group]
    ]
    server, done = a_pass(documents, [])
    assert done.result is not None
    assert "Unreadable" not in {each.code for each in done.result.findings}
    assert good_ones(server) == ALL_GOOD
    assert [each for each in done.result.reasons.values() if "read" in each.message] == []


def test_policies_for_subgroups_beyond_what_is_looked_at_make_a_group_invalid() -> None:
    _, done = a_pass([*good(), *HARM["policies for subgroups without end"]], [])
    assert done.result is not None
    (reason,) = done.result.reasons.values()
    assert "spec.subGroupPolicy: found 10,000 entries, expected at most 200" in reason.message


def test_names_of_any_length_are_told_in_short() -> None:
    """Conditions quote what a pod names, which may have as many characters as an annotation."""
    server = Double([*good(), live_pod("odd", namespace=EVIL, group="x" * 60_000, cpu=1)], [])
    pass_at(server)
    told = [body["status"]["conditions"][0]["message"] for path, body in server.written if path.endswith("/odd/status")]
    (message,) = told
    assert len(message) < 4_100
    assert message.startswith("InvalidGroup")


# ---------------------------------------------------------------------------------------- thousands that are to be told


class Told(Double):
    """A double that tells, in order, the pods whose conditions, and what whose Events are written."""

    @property
    def conditions(self) -> list[str]:
        return ["/".join(path.split("/")[4:7:2]) for path, _ in self.written if path.endswith("/status")]

    @property
    def events(self) -> list[str]:
        found = (body for path, body in self.written if path.endswith("/events"))
        return [f"{each['reason']} {each['metadata']['namespace']}/{each['regarding']['name']}" for each in found]


def waiting(namespace: str, count: int) -> list[Document]:
    return [live_pod(f"p-{number:03d}", namespace=namespace, cpu=1) for number in range(count)]


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Told:
    """A server at which hundreds of pods of one namespace wait, and a few of others that come behind it by name."""
    monkeypatch.setattr("placer.passes.cluster.writing.status_writer._WORKERS", 1)
    return Told([*waiting("evil", 300), *waiting("other", 2), *waiting("victim", 1)], [])


def gang_of(namespace: str, name: str) -> GroupKey:
    return GroupKey("", namespace, name)


def write_all(server: Told, gangs: list[GangOutcome], spent: float = 0.0) -> StatusReport:
    """Tell of all pods why they wait, and of gangs, when so much of the time is over."""
    keys = [gang_of(*Key(each["metadata"]["namespace"], each["metadata"]["name"])) for each in server.lists[PODS]]
    waits = {key: status_writer._WaitingReason("Unschedulable", "no room") for key in keys}
    writer = status_writer._StatusWriter(server, "placer", 100.0, threading.Event().is_set)
    writer._began -= spent
    half_bound = {gang.key for gang in gangs if gang.state is GangState.HALF_BOUND}
    changed = writer.conditions({Key(*key[1:]): key for key in keys}, waits, half_bound)
    told = [status_writer._gang_event(key, "Warning", "FailedScheduling", waits[key].message, {}) for key in changed]
    writer.events((*status_writer._events(gangs, (), {}), *told))
    return writer.report


def test_each_namespace_is_told_in_turn_and_of_what_is_half_bound_first(told: Told) -> None:
    bound = (PlannedBinding(Key("victim", "p-000"), "uid", "n1"),)
    late = GangOutcome(gang_of("evil", "p-299"), GangState.HALF_BOUND)
    half = GangOutcome(gang_of("victim", "p-000"), GangState.HALF_BOUND, bound, {Key("victim", "p-001"): "gone"})
    report = write_all(told, [late, half])
    assert told.conditions[:2] == ["victim/p-000", "evil/p-299"]
    assert told.conditions[2:6] == ["evil/p-000", "other/p-000", "evil/p-001", "other/p-001"]
    assert told.events[0] == "HalfBound victim/p-000"
    assert (len(told.conditions), report.conditions, report.events) == (303, 303, 305)


@pytest.mark.parametrize(("spent", "conditions", "events"), [(60, 303, 303), (75, 0, 1), (101, 0, 0)])
def test_conditions_leave_time_for_events(told: Told, spent: float, conditions: int, events: int) -> None:
    """Most time that they may take is 70 of 100 s."""
    bound = (PlannedBinding(Key("victim", "q"), "uid", "n1"),)
    report = write_all(told, [GangOutcome(gang_of("victim", "q"), GangState.BOUND, bound)], spent)
    assert (report.conditions, report.events) == (conditions, events if conditions == 0 else conditions + 1)
    assert report.troubles == (
        [] if conditions else ["there was no time to write everything; the next pass writes the rest"]
    )


# -------------------------------------------------------------------------------------------- thousands that go back


def outcomes(*names: str) -> list[GangOutcome]:
    keys = (GroupKey("scheduling.volcano.sh", *each.split("/")) for each in names)
    return [GangOutcome(key, GangState.HALF_BOUND) for key in keys]


def rolled_back(
    monkeypatch: pytest.MonkeyPatch, done: Pass, seconds: float = 0.0, most: int | None = None
) -> list[str]:
    """The gangs that are rolled back in turn, where each takes so long, and the pass is to end after so many."""
    went: list[str] = []
    stop, clock = threading.Event(), SimpleNamespace(monotonic=lambda: seconds * len(went))
    monkeypatch.setattr(rolling_back, "time", clock)

    def go(_server: object, _snapshot: object, gang: GangOutcome, _only: object) -> GangOutcome:
        went.append(f"{gang.key.namespace}/{gang.key.name}")
        if len(went) == most:
            stop.set()
        return gang

    monkeypatch.setattr(rolling_back, "roll_back", go)
    server: Any = ListServer({})
    gangs = done.bound.gangs
    keys = [gang.key for gang in gangs]

    def forbidden() -> str | None:
        return done.elector.lost or ("the pass was to end" if stop.is_set() else None)

    done.bound.gangs = rolling_back.roll_back_in_turn(server, snapshot_of([node("n1")]), gangs, keys, forbidden)
    return went


def half(*names: str) -> Pass:
    done = Pass(PassOptions())
    done.bound.gangs = outcomes(*names)
    return done


def test_thousands_of_one_namespace_do_not_hold_up_a_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    done = half(*(f"evil/{number:04d}" for number in range(1_000)), "other/a")
    went = rolled_back(monkeypatch, done, seconds=9.0)
    assert went[:2] == ["evil/0000", "other/a"]
    assert len(went) == 4
    left = [gang.reason for gang in done.bound.gangs if gang.reason]
    assert left == ["not rolled back: there was no time for it in this pass"] * 997


def test_whether_we_may_is_asked_before_each_gang_that_goes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another pass may have begun to complete it."""
    done, asked = half("a/1", "a/2", "a/3"), []

    class Elector(NoElection):
        @property
        def lost(self) -> str | None:  # type: ignore[override]
            asked.append(1)
            return "the Lease is another's" if len(asked) > 1 else None

    done.elector = object.__new__(Elector)
    assert rolled_back(monkeypatch, done) == ["a/1"]
    assert [gang.reason for gang in done.bound.gangs[1:]] == ["not rolled back: the Lease is another's"] * 2


def test_a_pass_that_is_to_end_rolls_no_further_gang_back(monkeypatch: pytest.MonkeyPatch) -> None:
    assert rolled_back(monkeypatch, half("a/1", "a/2", "a/3"), most=2) == ["a/1", "a/2"]
