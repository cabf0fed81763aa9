"""One API server for the session; every test that asks for ``cluster`` finds it empty.

Custom resource definitions stay from test to test: to remove and make them again takes a server seconds, and has taken
one four minutes, which is within the five after which its controllers look at everything again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from placer.passes.cluster.writing.lease import LeaseOptions
from tests.cluster.api import Api
from tests.cluster.applied import Applied, Run
from tests.cluster.binaries import Missing, program, programs, resource_definitions
from tests.cluster.deployed import Deployed
from tests.cluster.passes import Passes
from tests.cluster.proxy import Proxy, proxied
from tests.cluster.server import ControlPlane

T = TypeVar("T")
Started = Callable[[], None]
POLICIES = Path(__file__).parents[2] / "deploy" / "crds" / "placer" / "policies.yaml"


def _found(look: Callable[[], T]) -> T:
    """What is looked for; where it is missing, skip, or fail where all tools must be there."""
    try:
        return look()
    except Missing as missing:
        message = str(missing)
    if os.environ.get("PLACER_REQUIRE_TOOLS") == "1":
        pytest.fail(message, pytrace=False)
    pytest.skip(message)


@pytest.fixture(scope="session")
def scheduler_program(control_plane: ControlPlane) -> Path:
    """kube-scheduler, which a folder that the user gives need not have."""
    return _found(lambda: program(control_plane.programs, "kube-scheduler"))


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """etcd and kube-apiserver, running."""
    found = ControlPlane(_found(programs), tmp_path_factory.mktemp("control-plane"))
    try:
        found.start()
        yield found
    finally:
        found.stop()


@pytest.fixture(scope="session")
def api(control_plane: ControlPlane) -> Api:
    """Plain HTTP to the API server, as an administrator."""
    return Api(control_plane.url, control_plane.certificate, control_plane.token)


@pytest.fixture
def cluster(api: Api) -> Api:
    """The API server without anything that another test has made; definitions and our namespace are there."""
    api.wipe()
    api.make_namespaces("placer")
    return api


@pytest.fixture
def undefined(cluster: Api) -> Api:
    """The API server without any custom resource definition."""
    cluster.uninstall()
    return cluster


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let tests of a server without definitions come first, when there are none to remove."""
    items.sort(key=lambda item: "undefined" not in getattr(item, "fixturenames", ()))


@pytest.fixture
def start_kube_scheduler(cluster: Api, control_plane: ControlPlane, scheduler_program: Path) -> Iterator[Started]:
    """Starts it, in the middle of a test; it runs until the test ends."""
    yield control_plane.start_kube_scheduler
    control_plane.end("kube-scheduler")


@pytest.fixture
def kube_scheduler(start_kube_scheduler: Started) -> None:
    """Runs as long as the test does."""
    start_kube_scheduler()


@pytest.fixture
def deployed(cluster: Api, control_plane: ControlPlane) -> Iterator[Deployed]:
    """An empty server to which folders of ``deploy/`` are applied; the definitions among them stay."""
    found = Deployed(cluster, control_plane)
    yield found
    found.remove()


@pytest.fixture
def install(api: Api) -> Callable[..., None]:
    """Install a project's custom resource definitions: a key of ``CRDS``.

    Those of Volcano's Jobs, which take a server as long as all others together, come only when they are asked for.
    """

    def work(whose: str, *, jobs: bool = False) -> None:
        files = _found(lambda: resource_definitions(whose))
        api.install([each for each in files if jobs or "batch.volcano.sh" not in each.name])

    return work


@pytest.fixture
def passes(
    cluster: Api, install: Callable[[str], None], control_plane: ControlPlane, capsys: pytest.CaptureFixture[str]
) -> Passes:
    """Makes passes at an empty server that knows Volcano's kinds."""
    install("volcano")
    return Passes(control_plane, capsys)


@pytest.fixture
def proxy(passes: Passes, control_plane: ControlPlane) -> Iterator[Proxy]:
    """In front of the server in every pass."""
    with proxied(control_plane) as found:
        passes.url = found.url
        yield found


@pytest.fixture
def applied(
    control_plane: ControlPlane, capsys: pytest.CaptureFixture[str], passes: Passes, lasting_lease: None
) -> Callable[[str], Applied]:
    """Calls of a command with ``--apply`` at an empty server that knows Volcano's kinds."""
    return lambda command: Applied(control_plane, capsys, passes, command)


@pytest.fixture
def preempt(applied: Callable[[str], Applied]) -> Applied:
    return applied("preempt")


@pytest.fixture
def defrag(applied: Callable[[str], Applied]) -> Applied:
    return applied("defrag")


@pytest.fixture
def repair(applied: Callable[[str], Applied]) -> Applied:
    return applied("repair")


@pytest.fixture
def lasting_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have passes and calls stay the leader for ten minutes without an answer.

    A server that starves for ten seconds on a busy machine ends a pass, as it is to; no such test is about that.
    """
    for where in ("pass_flags", "applying"):
        monkeypatch.setattr(f"placer.cli.{where}.lease_of", lambda _: LeaseOptions(renew_deadline=600.0))


@pytest.fixture
def run(cluster: Api, passes: Passes) -> Run:
    """Passes that may disturb, at an empty server that knows Volcano's kinds and ours."""
    cluster.install([POLICIES])
    return Run(passes)
