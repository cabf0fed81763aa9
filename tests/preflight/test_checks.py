"""Each branch of each check, at a server that is played here; ``test_check_findings_live.py`` asks a real one."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from placer.base.errors import ClusterError
from placer.cli import checking, main
from placer.passes.cluster.reading.access import Right
from placer.passes.cluster.reading.client import Client, Forbidden, Response
from placer.passes.cluster.writing.lease import LeaseOptions
from placer.passes.cluster.writing.status_writer import StatusOptions
from placer.passes.preflight import CheckResult, CheckState, check_cluster
from placer.passes.preflight.checks import MIB, memory_needed
from placer.passes.scheduling_pass import PassOptions
from tests.cluster.snapshots import ListServer
from tests.support import Document

OK, UNKNOWN, WARNING, FAILED = CheckState.OK, CheckState.UNKNOWN, CheckState.WARNING, CheckState.FAILED
LEASE = "/apis/coordination.k8s.io/v1/namespaces/placer/leases/placer"
VOLCANO = {f"/apis/scheduling.volcano.sh/v1beta1/{each}": [] for each in ("podgroups", "queues")}
NOW = datetime(2026, 11, 23, 8, tzinfo=UTC)


class CheckedServer(ListServer):
    """A server that has what every cluster has, refuses what it is told to, and answers every review."""

    def __init__(self, lists: Mapping[str, list[Document]] | None = None, **options: Any) -> None:
        placer: list[Document] = [{"metadata": {"name": "placer"}}]
        written: dict[str, list[Document]] = {
            "/apis/coordination.k8s.io/v1/leases": [],
            "/apis/events.k8s.io/v1/events": [],
            "/api/v1/namespaces": placer,
        }
        written.pop(options.get("absent", ""), None)
        super().__init__(written | dict(lists or {}))
        self.url = "https://cluster"
        self.denied: set[Right] = options.get("denied", set())
        self.forbidden: tuple[str, ...] = options.get("forbidden", ())
        self.lease: dict[str, Any] | None = options.get("lease")
        self.version: str = options.get("version", "v1.35.4")
        self.nodes: int = options.get("nodes", 3)
        self.offset = timedelta(seconds=options.get("offset", 0))
        self.review = options.get("review", 201)
        self.who = options.get("who", self.review)

    def now(self) -> datetime:
        return (NOW if self.lease else datetime.now(UTC)) + self.offset

    def get(self, path: str, parameters: Mapping[str, str] | None = None) -> Response:
        if path in self.forbidden:
            raise Forbidden(path)
        if path == "/version":
            return Response(200, json.dumps({"gitVersion": self.version}).encode())
        if path == LEASE:
            return Response(404, b"{}") if self.lease is None else Response(200, json.dumps(self.lease).encode())
        if path == "/api/v1/nodes":
            page = {"metadata": {"remainingItemCount": self.nodes - 1}, "items": [{}]}
            return Response(200, json.dumps(page).encode())
        return super().get(path, parameters)

    def send(self, method: str, path: str, body: Any = None, **_: Any) -> Response:
        assert method == "POST"
        if path.endswith("selfsubjectreviews"):
            return Response(self.who, b'{"status": {"userInfo": {"username": "ada"}}}')
        asked = body["spec"]["resourceAttributes"]
        resource = "/".join(filter(None, (asked["resource"], asked.get("subresource"))))
        right = Right(
            asked.get("group", ""), resource, asked["verb"], asked.get("namespace", ""), asked.get("name", "")
        )
        return Response(self.review, json.dumps({"status": {"allowed": right not in self.denied}}).encode())


def checked(server: CheckedServer, options: PassOptions | None = None) -> list[CheckResult]:
    return check_cluster(cast(Client, server), options or PassOptions())


def of(check: str, results: list[CheckResult]) -> list[CheckResult]:
    """What a check found that is not as it should be; all of it, where nothing is."""
    found = [each for each in results if each.check == check]
    assert found
    return [each for each in found if each.state is not OK] or found


def pod(name: str, *words: str, image: str = "example.com/thing:1", **more: Any) -> Document:
    """A pod that runs a command."""
    spec = {"containers": [{"name": "main", "image": image, "args": list(words)}]} | more.pop("spec", {})
    metadata = {"name": name, "namespace": "kube-system"} | more.pop("metadata", {})
    return {"metadata": metadata, "spec": spec, "status": more.pop("status", {"phase": "Running"})}


def with_pods(*pods: Document, **options: Any) -> CheckedServer:
    return CheckedServer(options.pop("lists", {}) | {"/api/v1/pods": list(pods)}, **options)


def test_where_everything_is_well_nothing_is_to_be_done() -> None:
    results = checked(CheckedServer())
    assert {each.state for each in results} == {OK}
    assert {each.action for each in results} == {""}
    assert list(dict.fromkeys(each.check for each in results)) == [
        "server",
        "kinds",
        "rights",
        "lease",
        "other schedulers",
        "volcano",
        "clock",
        "memory",
    ]


# -------------------------------------------------------------------------------------------------- server and kinds


@pytest.mark.parametrize(
    ("version", "state"), [("v1.35.4", OK), ("v1.30.0", OK), ("v1.29.9+k3s1", WARNING), ("", OK), ("v2.0.0", OK)]
)
def test_the_version_is_told_and_an_old_one_warned_of(version: str, state: CheckState) -> None:
    (result,) = of("server", checked(CheckedServer(version=version)))
    assert result.state is state
    assert version in result.found
    assert result.found.endswith("as ada")


def test_a_server_that_does_not_say_who_we_are_is_no_trouble() -> None:
    (result,) = of("server", checked(CheckedServer(who=404)))
    assert (result.state, result.found) == (OK, "Kubernetes v1.35.4")


def test_a_review_that_is_not_answered_ends_the_check() -> None:
    with pytest.raises(ClusterError, match=r"selfsubjectaccessreviews: found status 500"):
        checked(CheckedServer(review=500))


def test_kinds_that_are_served_are_told_with_their_version() -> None:
    results = checked(CheckedServer({**VOLCANO, "/apis/topology.volcano.sh/v1alpha1/hypernodes": []}))
    found = {each.object: each.found for each in results if each.check == "kinds"}
    assert found["PodGroup.scheduling.volcano.sh"] == "served as scheduling.volcano.sh/v1beta1"
    assert found["HyperNode.topology.volcano.sh"] == "served as topology.volcano.sh/v1alpha1"
    assert found["NetworkTopology.networktopology.diktyo.x-k8s.io"] == "not served, so none exist"
    assert found["Node"] == "served as v1"


@pytest.mark.parametrize(
    ("path", "state", "expected"),
    [
        ("/apis/topology.volcano.sh/v2/hypernodes", FAILED, "topology.volcano.sh/v1alpha1"),
        ("/apis/scheduling.k8s.io/v9/podgroups", WARNING, "scheduling.k8s.io/v1alpha2 or v1alpha3 or v1beta1"),
    ],
)
def test_a_version_that_is_not_read_is_told(path: str, state: CheckState, expected: str) -> None:
    (result,) = of("kinds", checked(CheckedServer({path: []})))
    assert result.state is state
    assert result.found == f"served as {'/'.join(path.split('/')[2:4])}"
    assert expected in result.expected


def test_what_a_pass_writes_must_be_served() -> None:
    server = CheckedServer(absent="/apis/events.k8s.io/v1/events")
    (result,) = of("kinds", checked(server))
    assert (result.state, result.object, result.found) == (FAILED, "events", "not served")
    assert {each.state for each in of("kinds", checked(server, PassOptions(dry_run="client")))} == {OK}


def test_volcanos_jobs_must_be_served_where_they_are_let_in() -> None:
    (result,) = of("kinds", checked(CheckedServer(), PassOptions(enqueue=True)))
    assert (result.state, result.object) == (FAILED, "Job.batch.volcano.sh")
    served = CheckedServer({**VOLCANO, "/apis/batch.volcano.sh/v1alpha1/jobs": []})
    assert {each.state for each in of("kinds", checked(served, PassOptions(enqueue=True)))} == {OK}


# ------------------------------------------------------------------------------------------------------------ rights


def test_a_right_that_is_missing_is_told_with_its_rule() -> None:
    bind = Right("", "pods/binding", "create")
    (result,) = of("rights", checked(CheckedServer(denied={bind})))
    assert (result.state, result.object) == (FAILED, "create pods/binding")
    assert result.action == (
        'kubectl apply -k deploy/base, or give {apiGroups: [""], resources: [pods/binding], verbs: [create]} '
        "in a ClusterRole"
    )


def test_a_right_by_name_is_told_with_name_and_namespace() -> None:
    held = Right("coordination.k8s.io", "leases", "update", "placer", "placer")
    (result,) = of("rights", checked(CheckedServer(denied={held})))
    assert result.object == "update leases.coordination.k8s.io placer in namespace placer"
    assert "resourceNames: [placer], verbs: [update]} in a Role of namespace placer" in result.action


def test_a_right_to_a_kind_that_is_not_there_is_a_warning() -> None:
    queues = Right("scheduling.volcano.sh", "queues", "list")
    status = Right("scheduling.k8s.io", "podgroups/status", "patch")
    upstream = {"/apis/scheduling.k8s.io/v1beta1/podgroups": []}
    for right, there in ((queues, VOLCANO), (status, upstream)):
        for lists, state in (({}, WARNING), (there, FAILED)):
            (result,) = of("rights", checked(CheckedServer(lists, denied={right})))
            assert result.state is state


def test_measured_costs_need_the_right_to_their_config_map() -> None:
    path = "/apis/networktopology.diktyo.x-k8s.io/v1alpha1/networktopologies"
    topology: Document = {"metadata": {"name": "nt", "namespace": "net"}, "spec": {"configmapName": "measured"}}
    measured = Right("", "configmaps", "get", "net", "measured")
    (result,) = of("rights", checked(CheckedServer({path: [topology]}, denied={measured})))
    assert (result.state, result.object) == (FAILED, str(measured))
    assert result.action.startswith("kubectl apply -k deploy/measurements")
    unlisted = Right("networktopology.diktyo.x-k8s.io", "networktopologies", "list")
    server = CheckedServer({path: [topology]}, denied={unlisted, measured}, forbidden=(path,))
    assert [each.object for each in of("rights", checked(server))] == [str(unlisted)]


@pytest.mark.parametrize(
    ("options", "without"),
    [
        (PassOptions(patience=float("inf")), "delete pods"),
        (PassOptions(status=StatusOptions(events=False)), "create events.events.k8s.io"),
        (PassOptions(status=StatusOptions(conditions=False)), "patch podgroups/status.scheduling.k8s.io"),
        (PassOptions(status=StatusOptions(groups=False)), "patch podgroups.scheduling.volcano.sh"),
        (PassOptions(dry_run="client"), "create pods/binding"),
        (PassOptions(dry_run="server"), "create leases.coordination.k8s.io in namespace placer"),
    ],
)
def test_what_the_options_leave_out_needs_no_right(options: PassOptions, without: str) -> None:
    asked = {each.object for each in checked(CheckedServer()) if each.check == "rights"}
    less = {each.object for each in checked(CheckedServer(), options) if each.check == "rights"}
    assert without in asked - less
    assert "list pods" in less


# ------------------------------------------------------------------------------------------------------------- Lease


def lease(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "placer"}, "spec": spec}


def held(seconds: float) -> dict[str, Any]:
    """A Lease that was renewed so long ago."""
    renewed = f"{NOW - timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%S.%fZ}"
    return lease(holderIdentity="placer-17_x", leaseDurationSeconds=15, renewTime=renewed)


@pytest.mark.parametrize(
    ("record", "state", "found"),
    [
        (None, OK, "not there yet; the first pass makes it"),
        (lease(), OK, "free"),
        (lease(holderIdentity=""), OK, "free"),
        (held(3), OK, "held by placer-17_x, a pass that is under way"),
        (held(40), WARNING, "held by placer-17_x, which renewed it last at 2026-11-23T07:59:20Z"),
        (lease(holderIdentity="x"), WARNING, "held by x, which renewed it last at"),
    ],
)
def test_who_holds_the_lease_and_whether_it_lives(record: dict[str, Any] | None, state: CheckState, found: str) -> None:
    (result,) = of("lease", checked(CheckedServer(lease=record)))
    assert result.state is state
    assert result.found.startswith(found)


def test_a_pause_is_told_with_how_to_end_it() -> None:
    record = lease() | {"metadata": {"name": "placer", "annotations": {"placer.dev/paused": "the fabric"}}}
    (result,) = of("lease", checked(CheckedServer(lease=record)))
    assert (result.state, result.found) == (WARNING, "paused: the fabric")
    assert result.action == "kubectl -n placer annotate lease placer placer.dev/paused-"


def test_the_namespace_of_the_lease_must_be_there() -> None:
    options = PassOptions(lease=LeaseOptions("elsewhere"))
    (result,) = of("lease", checked(CheckedServer(), options))
    assert (result.state, result.object, result.found) == (FAILED, "Namespace elsewhere", "not there")
    (unlisted,) = of("lease", checked(CheckedServer(forbidden=("/api/v1/namespaces",))))
    assert unlisted.state is OK


def test_a_lease_that_may_not_be_read_is_not_known() -> None:
    (result,) = of("lease", checked(CheckedServer(forbidden=(LEASE,))))
    assert result.state is UNKNOWN


def test_a_dry_run_needs_no_lease() -> None:
    (result,) = of("lease", checked(CheckedServer(forbidden=(LEASE,)), PassOptions(dry_run="client")))
    assert (result.state, result.found) == (OK, "not needed by a dry run")


# -------------------------------------------------------------------------------------------------- other schedulers


@pytest.mark.parametrize(
    ("words", "image"),
    [
        (("--scheduler-name=placer",), "example.com/mine:1"),
        (("--v=2", "--scheduler-name", "placer"), "example.com/mine:1"),
        (("--scheduler-name=volcano", "--scheduler-name=placer"), "volcanosh/vc-scheduler:v1.15.1"),
    ],
)
def test_another_scheduler_of_our_name_is_found_by_its_arguments(words: tuple[str, ...], image: str) -> None:
    (result,) = of("other schedulers", checked(with_pods(pod("other", *words, image=image))))
    assert (result.state, result.object) == (FAILED, "Pod kube-system/other")


@pytest.mark.parametrize(
    ("words", "image", "name"),
    [
        (("--leader-elect",), "registry.k8s.io/kube-scheduler:v1.35.4", "default-scheduler"),
        (("--v=3",), "volcanosh/vc-scheduler:v1.15.1", "volcano"),
    ],
)
def test_a_program_has_the_name_of_its_default(words: tuple[str, ...], image: str, name: str) -> None:
    server = with_pods(pod("other", *words, image=image))
    found = of("other schedulers", checked(server, PassOptions(scheduler_name=name)))
    assert [(each.state, each.object) for each in found] == [(FAILED, "Pod kube-system/other")]
    assert {each.state for each in of("other schedulers", checked(server))} == {OK}


def test_the_default_schedulers_name_is_never_ours() -> None:
    (result,) = of("other schedulers", checked(CheckedServer(), PassOptions(scheduler_name="default-scheduler")))
    assert result.state is FAILED


def test_what_has_ended_or_reads_a_file_or_has_another_name_is_none() -> None:
    server = with_pods(
        pod("ended", "--scheduler-name=placer", status={"phase": "Succeeded"}),
        pod("file", "--config=/etc/profiles.yaml", image="kube-scheduler:1"),
        pod("another", "--scheduler-name=placer2"),
        pod("torn", "--scheduler-name"),
    )
    (result,) = of("other schedulers", checked(server))
    assert result.state is OK
    assert "4 pods" in result.found
    assert "profiles in files cannot be seen" in result.found


def test_a_nomination_that_placer_did_not_make_shows_another_scheduler() -> None:
    waits = {"phase": "Pending", "nominatedNodeName": "n1"}
    server = with_pods(
        pod("ours", spec={"schedulerName": "placer"}, status=waits),
        pod("bound", spec={"schedulerName": "placer", "nodeName": "n1"}, status=waits),
        pod("theirs", spec={"schedulerName": "volcano"}, status=waits),
    )
    (result,) = of("other schedulers", checked(server))
    assert (result.state, result.object) == (WARNING, "Pod kube-system/ours")


def test_passes_in_another_namespace_hold_another_lease() -> None:
    labels = {"app.kubernetes.io/name": "placer", "app.kubernetes.io/component": "pass"}
    there = pod("placer-1", "run", metadata={"namespace": "second", "labels": labels}, status={"phase": "Succeeded"})
    ours = pod("placer-1", "run", metadata={"namespace": "placer", "labels": labels})
    (result,) = of("other schedulers", checked(with_pods(there, ours)))
    assert (result.state, result.object) == (WARNING, "Namespace second")


def test_where_pods_may_not_be_listed_it_is_not_known() -> None:
    results = checked(CheckedServer(forbidden=("/api/v1/pods",)))
    for check in ("other schedulers", "volcano", "memory"):
        assert [each.state for each in of(check, results)] == [UNKNOWN]


# ------------------------------------------------------------------------------------------------------------ Volcano


def manager(*words: str, name: str = "manager", program: str = "vc-controller-manager") -> Document:
    return pod(name, *words, image=f"volcanosh/{program}:v1.15.1")


@pytest.mark.parametrize(
    ("words", "state", "found", "action"),
    [
        (("--scheduler-name=volcano", "--scheduler-name=placer"), OK, "vc-controller-manager knows placer", ""),
        (
            ("--scheduler-name=volcano,placer",),
            WARNING,
            "vc-controller-manager knows volcano,placer as one name with a comma in it",
            "give it --scheduler-name=volcano --scheduler-name=placer, the argument once for each name",
        ),
        (
            (),
            WARNING,
            "vc-controller-manager knows volcano",
            "give it --scheduler-name=volcano --scheduler-name=placer, the argument once for each name",
        ),
    ],
)
def test_volcanos_controllers_are_to_know_our_name(
    words: tuple[str, ...], state: CheckState, found: str, action: str
) -> None:
    results = checked(with_pods(manager(*words), lists=VOLCANO), PassOptions(enqueue=True))
    (result,) = (each for each in results if each.object == "Pod kube-system/manager")
    assert (result.check, result.state, result.found, result.action) == ("volcano", state, found, action)


@pytest.mark.parametrize(
    ("runs", "options", "state", "folder"),
    [
        (True, PassOptions(), FAILED, "beside-volcano"),
        (True, PassOptions(status=StatusOptions(groups=False)), OK, ""),
        (True, PassOptions(status=StatusOptions(groups=False), enqueue=True), FAILED, "beside-volcano"),
        (False, PassOptions(), WARNING, "inqueue"),
        (False, PassOptions(enqueue=True), OK, ""),
    ],
)
def test_one_of_us_writes_the_status_of_pod_groups(
    runs: bool, options: PassOptions, state: CheckState, folder: str
) -> None:
    pods = [pod("s", image="volcanosh/vc-scheduler:v1.15.1")] if runs else []
    (result,) = of("volcano", checked(with_pods(*pods, lists=VOLCANO), options))
    assert result.state is state
    assert folder in result.action


def test_a_dry_run_beside_volcano_writes_nothing_that_could_be_anothers() -> None:
    (result,) = of("volcano", checked(CheckedServer(VOLCANO), PassOptions(dry_run="client")))
    assert result.state is OK


def test_a_cluster_without_volcano() -> None:
    (result,) = of("volcano", checked(CheckedServer()))
    assert (result.state, result.found) == (OK, "not installed")


# --------------------------------------------------------------------------------------------------- clock and memory


@pytest.mark.parametrize(
    ("offset", "state", "found"),
    [(0, OK, "within 5 s"), (-3, OK, "within 5 s"), (60, WARNING, "60 s behind"), (-60, WARNING, "60 s ahead of")],
)
def test_clocks_are_compared(offset: float, state: CheckState, found: str) -> None:
    (result,) = of("clock", checked(CheckedServer(offset=offset)))
    assert result.state is state
    assert result.found.startswith(found)


def test_memory_is_compared_with_what_a_cluster_of_this_size_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("placer.passes.preflight.checks.memory_limit", lambda: 512 * MIB)
    (enough,) = of("memory", checked(CheckedServer(nodes=5_000)))
    assert (enough.state, enough.object) == (OK, "5,000 nodes, 0 pods")
    (little,) = of("memory", checked(CheckedServer(nodes=100_000)))
    assert little.state is FAILED
    assert little.found == "a pass takes up to 1,081 MiB; 512 MiB are here"
    assert "1,081 MiB" in little.action
    (unknown,) = of("memory", checked(CheckedServer(forbidden=("/api/v1/nodes",))))
    assert unknown.state is UNKNOWN


def test_no_pass_that_was_measured_took_more() -> None:
    """The rows of the tables in ``deploy/README.md`` and ``docs/passes.md``."""
    root = Path(__file__).parents[2]
    page = (root / "deploy" / "README.md").read_text() + (root / "docs" / "passes.md").read_text()
    rows = re.findall(r"^\| ([\d,]+) \| ([\d,]+), [\d,]+ \| (\d+) MiB \|", page, re.MULTILINE)
    assert len(rows) == 3
    for nodes, pods, most in rows:
        assert memory_needed(int(nodes.replace(",", "")), int(pods.replace(",", ""))) > int(most) * MIB
    (snapshot,) = re.findall(r"\| its peak memory \| (\d+) MiB", page)
    assert memory_needed(5_000, 55_000) > int(snapshot) * MIB


# -------------------------------------------------------------------------------------------------------- the command


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Has the command ask a played server."""

    def connected(server: CheckedServer) -> None:
        monkeypatch.setattr(Client, "connect", lambda *_: server)

    return connected


@pytest.mark.parametrize(
    ("server", "flags", "code"),
    [
        (CheckedServer(), (), 0),
        (CheckedServer(offset=60), (), 0),
        (CheckedServer(offset=60), ("--strict",), 3),
        (CheckedServer(), ("--strict",), 0),
        (CheckedServer(denied={Right("", "pods", "list")}), (), 6),
        (CheckedServer(denied={Right("", "pods", "list")}), ("--strict",), 6),
        (CheckedServer(denied={Right("", "pods", "delete")}), ("--half-bound-patience=inf",), 0),
    ],
)
def test_the_exit_code_says_how_it_stands(
    server: CheckedServer, flags: tuple[str, ...], code: int, at: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    at(server)
    assert main(["check", "--json", *flags]) == code
    told = json.loads(capsys.readouterr().out)
    assert told["state"] == max(
        (each["state"] for each in told["checks"]), key=[state.value for state in CheckState].index
    )
    assert all(each["action"] for each in told["checks"] if each["state"] in ("warning", "failed"))


@pytest.mark.parametrize("width", ["80", "60", "200"])
def test_the_table_takes_eighty_columns_at_most(
    width: str, at: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", width)
    denied = {Right("networktopology.diktyo.x-k8s.io", "networktopologies", "list"), Right("", "pods", "watch")}
    at(with_pods(manager("--scheduler-name=volcano,placer"), lists=VOLCANO, denied=denied, offset=70))
    assert main(["check"]) == 6
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= min(int(width), checking.WIDTH)
    text = re.sub(r"\s+", " ", " ".join(lines))
    assert "rights: failed: watch pods" in text
    assert "volcano: warning: Pod kube-system/manager" in text
    assert "clock: warning: this machine's" in text


def test_names_of_pods_are_shown_and_never_obeyed(at: Any, capsys: pytest.CaptureFixture[str]) -> None:
    at(with_pods(pod("\x1b[2J", "--scheduler-name=placer")))
    assert main(["check"]) == 6
    told = capsys.readouterr().out
    assert "\x1b" not in told
    assert "\\x1b[2J" in told


def test_flags_that_make_no_sense_are_refused_before_anything_is_asked(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--kubeconfig", "/nowhere", "--gang-grace", "-1"]) == 2
    assert "--gang-grace: found -1.0" in capsys.readouterr().err


def test_options_of_another_lease_are_asked_for() -> None:
    options = replace(PassOptions(), lease=LeaseOptions("batch", "second"))
    asked = {each.object for each in checked(CheckedServer(), options) if each.check == "rights"}
    assert "update leases.coordination.k8s.io second in namespace batch" in asked
    assert "update configmaps second-gangs in namespace batch" in asked
