"""``docs/operating.md``, followed to the letter by a new operator: on an empty API server with real controllers."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.api import Api
from tests.cluster.binaries import program, programs
from tests.cluster.conftest import _found
from tests.cluster.server import ControlPlane
from tests.docs.pages import ROOT, Block, blocks
from tests.support import node

PAGE = (ROOT / "docs" / "operating.md").read_text(encoding="utf-8")
#: Seconds after which a command of the page is taken for one that waits for ever.
LONGEST = 180.0
#: What no API server without a kubelet can do.
APART = "<!-- needs a kubelet -->\n```sh\n"


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[ControlPlane]:
    """A server of its own, to which nothing was ever applied, and the controllers that the page relies on."""
    (tmp_path / "server").mkdir()
    found = ControlPlane(_found(programs), tmp_path / "server")
    _found(lambda: program(found.programs, "kube-controller-manager"))
    try:
        found.start()
        config = found.kubeconfig("kube-controller-manager")
        found.run(
            "kube-controller-manager",
            f"--kubeconfig={config}",
            "--controllers=namespace-controller,cronjob-controller,job-controller,garbage-collector-controller",
            "--leader-elect=false",
            "--secure-port=0",
        )
        yield found
    finally:
        found.stop()


def typed(block: Block, folder: Path, control_plane: ControlPlane) -> str:
    """What a block prints; every command of it must end with 0."""
    path = os.pathsep.join([str(control_plane.programs), str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {
        **os.environ,
        "PATH": path,
        "PYTHONPATH": str(ROOT),
        "HOME": str(folder),
        "KUBECONFIG": str(control_plane.kubeconfig()),
    }
    command = ["bash", "-e", "-o", "pipefail", "-c", block.text]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=LONGEST
    )
    assert done.returncode == 0, f"{block.text}ends with {done.returncode}:\n{done.stdout}{done.stderr}"
    return done.stdout


class KubeScheduler:
    """Runs where the page needs it, and not beyond: no kubelet would end the pods of passes that it binds."""

    def __init__(self, control_plane: ControlPlane, api: Api) -> None:
        _found(lambda: program(control_plane.programs, "kube-scheduler"))
        self._control_plane, self._api, self._runs = control_plane, api, False

    def runs(self, wanted: bool) -> None:
        """Have it run, or not."""
        if wanted and not self._runs:
            self._control_plane.start_kube_scheduler()
        elif self._runs and not wanted:
            self._control_plane.end("kube-scheduler")
            for each in self._api.items("/api/v1/namespaces/placer/pods"):
                self._api.delete(f"/api/v1/namespaces/placer/pods/{each['metadata']['name']}")
        self._runs = wanted


@pytest.mark.exhaustive
def test_a_new_operator_follows_the_page_from_the_first_command_to_the_last(
    empty: ControlPlane, tmp_path: Path
) -> None:
    folder = tmp_path / "repository"
    folder.mkdir()
    shutil.copytree(ROOT / "deploy", folder / "deploy", symlinks=True)
    api = Api(empty.url, empty.certificate, empty.token)
    api.create(node("n1", cpu=8, memory="16Gi"))
    page = PAGE.replace(APART, "```console\n")
    assert page.count("```console\n") == PAGE.count(APART) == 1
    said = {}
    scheduler = KubeScheduler(empty, api)
    for block in blocks(page):
        scheduler.runs(page[: block.start].rpartition("\n## ")[2].startswith("Gates"))
        if block.title is not None:
            (folder / block.title).write_text(block.text, encoding="utf-8")
        elif block.language == "sh":
            said[block.text] = typed(block, folder, empty)
    line = next(text for command, text in said.items() if "placer run --save" in command)
    assert '"bound": 2' in line
    assert re.findall(r"trial-\d .* n1 ", line) != []
    released = next(text for command, text in said.items() if "placer run --enforce gates" in command)
    assert '"released": 2' in released
    assert released.count("condition met") == 2
    watched = next(text for command, text in said.items() if "reason=Released" in command)
    assert "default/giant: InsufficientResources" in watched
    assert "Released 2 pods for 1 node" in watched
    assert not re.findall(r"held-\d n1:", watched)
    paused = next(text for command, text in said.items() if "placer.dev/paused=" in command)
    assert "is annotated placer.dev/paused: the fabric is upgraded" in paused
    left = [each["metadata"]["name"] for each in api.items("/apis/rbac.authorization.k8s.io/v1/clusterroles")]
    assert not [name for name in left if name.startswith("placer")]
    assert "placer" not in {each["metadata"]["name"] for each in api.items("/api/v1/namespaces")}
