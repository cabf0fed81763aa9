"""What ``placer check`` finds at a real API server: each condition is made there, and once it is not so."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from placer.cli import main
from placer.passes.cluster.writing.lease import LeaseOptions
from placer.passes.preflight import checks
from placer.passes.preflight.checks import MIB
from placer.search.memory import memory_limit
from tests.cluster.api import Api, definitions
from tests.cluster.binaries import resource_definitions
from tests.cluster.conftest import _found
from tests.cluster.deployed import Deployed
from tests.cluster.passes import Passes
from tests.cluster.server import ControlPlane
from tests.cluster.test_check_live import flags, rendered
from tests.cluster.things import live_pod
from tests.support import Document, node

LEASES = "/apis/coordination.k8s.io/v1/namespaces/placer/leases"

#: State, object and what was found.
Finding = tuple[str, str, str]


class Checks:
    """Calls ``placer check``; of each call the findings, the exit code in ``code``."""

    def __init__(self, control_plane: ControlPlane, capsys: pytest.CaptureFixture[str]) -> None:
        self._control_plane, self._capsys = control_plane, capsys
        self.config: str | None = None  #: of another user than an administrator
        self.code = 0

    def __call__(self, *words: str) -> list[dict[str, Any]]:
        self._capsys.readouterr()
        config = self.config or str(self._control_plane.kubeconfig())
        self.code = main(["check", "--json", "--kubeconfig", config, *words])
        told = self._capsys.readouterr()
        assert told.out, told.err
        found: list[dict[str, Any]] = json.loads(told.out)["checks"]
        return found

    def of(self, check: str, *words: str) -> list[Finding]:
        """What a check finds that is not as it should be; all of it where nothing is. It says what to do, then."""
        found = [each for each in self(*words) if each["check"] == check]
        assert found
        wrong = [each for each in found if each["state"] != "ok"]
        assert all(each["action"] for each in wrong if each["state"] != "unknown")
        assert self.code == 6 or all(each["state"] != "failed" for each in wrong)
        return [(each["state"], each["object"], each["found"]) for each in wrong or found]


@pytest.fixture
def check(cluster: Api, control_plane: ControlPlane, capsys: pytest.CaptureFixture[str]) -> Checks:
    return Checks(control_plane, capsys)


# --------------------------------------------------------------------------------------------- kinds and their versions


def test_kinds_that_are_not_served_and_one_of_another_version(
    undefined: Api, control_plane: ControlPlane, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    check = Checks(control_plane, capsys)
    found = {each[1]: each for each in check.of("kinds")}
    assert found["HyperNode.topology.volcano.sh"][::2] == ("ok", "not served, so none exist")
    assert check.of("volcano") == [("ok", "Volcano", "not installed")]
    files = _found(lambda: resource_definitions("volcano"))
    (definition,) = (each for file in files for each in definitions(file) if _is_of(each, "hypernodes"))
    later = copy.deepcopy(definition)
    later["spec"]["versions"][0]["name"] = "v9"
    (tmp_path / "later.json").write_text(json.dumps(later))
    undefined.install([tmp_path / "later.json"])
    try:
        assert check.of("kinds") == [
            ("failed", "HyperNode.topology.volcano.sh", "served as topology.volcano.sh/v9"),
        ]
    finally:
        undefined.uninstall()


def _is_of(definition: Document, plural: str) -> bool:
    return bool(definition["spec"]["names"]["plural"] == plural)


# ------------------------------------------------------------------------------------------------- rights beside roles


def test_what_cannot_be_listed_is_not_known(check: Checks, deployed: Deployed) -> None:
    """An account without any right is told of each, and of what cannot be looked at for want of them."""
    accounts = "/api/v1/namespaces/placer/serviceaccounts"
    deployed.api.delete(f"{accounts}/stranger")
    deployed.api.call("POST", accounts, {"metadata": {"name": "stranger"}})
    check.config = deployed.kubeconfig("stranger")
    found = check()
    assert {each["state"] for each in found if each["check"] == "rights"} <= {"failed", "warning"}
    unknown = {each["check"] for each in found if each["state"] == "unknown"}
    assert unknown == {"lease", "other schedulers", "volcano", "memory"}
    check.config = None
    assert {each["state"] for each in check()} <= {"ok", "warning"}


def test_measured_costs_that_a_topology_names(
    check: Checks, deployed: Deployed, tmp_path: Path, install: Callable[[str], None]
) -> None:
    """The right to a ConfigMap is asked for where a NetworkTopology names one, and given by a folder of its own."""
    install("scheduler-plugins")
    deployed.apply("crds", "base")
    words = flags(rendered(deployed, "base"), tmp_path)
    check.config = deployed.kubeconfig("placer")
    measured = "get configmaps measured in namespace default"
    assert measured not in {each["object"] for each in check(*words)}
    deployed.api.create(
        {
            "apiVersion": "networktopology.diktyo.x-k8s.io/v1alpha1",
            "kind": "NetworkTopology",
            "metadata": {"name": "nt", "namespace": "default"},
            "spec": {"configmapName": "measured", "weights": []},
        }
    )
    assert check.of("rights", *words) == [("failed", measured, "not given")]
    deployed.apply("measurements")
    assert ("ok", measured, "given") in check.of("rights", *words)


# --------------------------------------------------------------------------------------------------------------- Lease


def lease(cluster: Api, holder: str | None, age: float, **annotations: str) -> None:
    """Have somebody have renewed the Lease so many seconds ago."""
    cluster.delete(f"{LEASES}/placer")
    renewed = f"{datetime.now(UTC) - timedelta(seconds=age):%Y-%m-%dT%H:%M:%S.%fZ}"
    spec = {"holderIdentity": holder, "leaseDurationSeconds": 1, "renewTime": renewed} if holder else {}
    cluster.call("POST", LEASES, {"metadata": {"name": "placer", "annotations": annotations}, "spec": spec})


def test_who_holds_the_lease(check: Checks, cluster: Api, passes: Passes) -> None:
    name = str(LeaseOptions())
    assert check.of("lease") == [("ok", name, "not there yet; the first pass makes it")]
    passes()  # makes it, and gives it back
    assert check.of("lease") == [("ok", name, "free")]
    lease(cluster, "another_1", -600.0)  # by a clock that is ahead, so that it is fresh however long this takes
    assert check.of("lease") == [("ok", name, "held by another_1, a pass that is under way")]
    lease(cluster, "another_1", 3600.0)
    ((state, _, found),) = check.of("lease")
    assert (state, found[:44]) == ("warning", "held by another_1, which renewed it last at ")
    assert check.code == 0
    told = passes()  # as was said: the next pass takes it over
    assert told["leader"] is not None
    assert check.of("lease") == [("ok", name, "free")]


# --------------------------------------------------------------------------------------------------- clock and memory


@pytest.fixture
def our_clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Puts this machine's clock forward, for the check; the server's goes on as it is."""

    def put(seconds: float) -> None:
        class Shifted(datetime):
            @classmethod
            def now(cls, tz: Any = None) -> Any:
                return datetime.now(tz) + timedelta(seconds=seconds)

        monkeypatch.setattr(checks, "datetime", Shifted)

    return put


def test_the_clock(check: Checks, our_clock: Callable[[float], None]) -> None:
    """The server's is told by the Date of its answers."""
    assert check.of("clock") == [("ok", "this machine's", "within 5 s of the server's")]
    for seconds, which in ((3600.0, "ahead of"), (-3600.0, "behind")):
        our_clock(seconds)
        ((state, name, found),) = check.of("clock")
        assert (state, name) == ("warning", "this machine's")
        assert int(found.partition(" s ")[0]) in range(3590, 3611)
        assert found.endswith(f" s {which} the server's")
        assert check.code == 0


@pytest.fixture
def limited(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A container that has 301 MiB, as its control group says."""
    (tmp_path / "memory.max").write_text(f"{301 * MIB}\n")
    monkeypatch.setattr(checks, "memory_limit", partial(memory_limit, tmp_path))


def test_memory_for_this_clusters_size(check: Checks, cluster: Api, limited: None) -> None:
    """Nodes and pods are counted at the server, which tells how many there are behind the first."""
    cluster.create(*(node(f"n{number:03d}") for number in range(40)))
    cluster.create(*(live_pod(f"p{number:03d}", cpu=1) for number in range(80)))
    fine = ("ok", "40 nodes, 80 pods", "a pass takes up to 300 MiB; 301 MiB are here")
    assert check.of("memory") == [fine]
    cluster.create(*(node(f"n{number:03d}") for number in range(40, 60)))
    cluster.create(*(live_pod(f"p{number:03d}", cpu=1) for number in range(80, 200)))
    assert check.of("memory") == [("failed", "60 nodes, 200 pods", "a pass takes up to 302 MiB; 301 MiB are here")]
