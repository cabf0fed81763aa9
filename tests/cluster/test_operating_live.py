"""``docs/operating.md``, followed to the letter by a new operator: on an empty API server with real controllers.

So is ``docs/alerts.md``, where nothing is amiss: each of its commands is one that can be typed.

Its passes are made by the pods that the controllers make, which a kubelet starts as processes. What there is in the
cluster afterwards, of every kind, is what there was before.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.api import Api, Refused, definitions
from tests.cluster.binaries import helm, program, programs, resource_definitions
from tests.cluster.conftest import _found
from tests.cluster.containers import Containers, Ended, containers
from tests.cluster.proxy import Proxy, Spoil, proxied
from tests.cluster.server import ControlPlane
from tests.docs.pages import ROOT, Block, blocks
from tests.support import Document, pod
from tests.tools import require
from tests.waiting import wait_until

PAGE = (ROOT / "docs" / "operating.md").read_text(encoding="utf-8")
#: Seconds after which a command of the page is taken for one that waits for ever.
LONGEST = 400.0
#: Of blocks that are for some: what stands in front of them.
_ONLY = re.compile(r"<!-- with (.+) -->")
#: Those of a cluster with one way of running.
WAYS = {"overlays/deployment": "the Deployment"}
OVERLAYS = sorted(f"overlays/{path.name}" for path in (ROOT / "deploy" / "overlays").iterdir())
COMPONENTS = ("discover", "measurements", "admission", "bandwidth", "monitoring", "policy")
#: Pods of a gang: as many as are bound at once, so that one gang comes after another.
SIZE = 16
#: Sections without which nothing comes and nothing goes.
LEAST = ("Install", "From one overlay to another", "Uninstall")
CONTROLLERS = (
    "namespace-controller",
    "cronjob-controller",
    "job-controller",
    "deployment-controller",
    "replicaset-controller",
    "garbage-collector-controller",
)
#: A pod of the page, and why it waits.
GIANT = "giant: InsufficientResources"
PAUSED = "is annotated placer.dev/paused: the fabric is upgraded"
#: Kinds that come and go by themselves, or are no objects.
_PASSING = ("Event", "ComponentStatus", "Lease/kube-system")


def sections(page: str) -> Iterator[tuple[str, list[tuple[str, Block]]]]:
    """Of each section its title and its blocks, each with whom it is for (nothing: everybody)."""
    for section in page.split("\n## ")[1:]:
        found = []
        for block in blocks(section):
            before = section[: section.rfind("```", 0, block.start)].rstrip("\n").rpartition("\n")[2]
            only = _ONLY.fullmatch(before)
            found.append((only[1] if only else "", block))
        yield section.partition("\n")[0], found


@dataclass
class Operator:
    """Who follows the page, and the cluster."""

    control_plane: ControlPlane
    api: Api
    node: Containers
    proxy: Proxy
    folder: Path = field(default_factory=Path)
    gangs: list[str] = field(default_factory=list)
    before: frozenset[str] = frozenset()  #: everything that there was at first

    def type(self, text: str, *, whole: bool = True) -> str:
        """What commands print; each must end with 0, and with ``whole`` so must each part of a pipe."""
        path = os.pathsep.join([str(self.control_plane.programs), str(Path(sys.executable).parent), os.environ["PATH"]])
        environment = {
            **os.environ,
            "PATH": path,
            "PYTHONPATH": str(ROOT),
            "HOME": str(self.folder),
            "KUBECONFIG": str(self.control_plane.kubeconfig()),
        }
        command = ["bash", "-e", *(["-o", "pipefail"] if whole else []), "-c", text]
        done = subprocess.run(
            command, cwd=self.folder, env=environment, capture_output=True, text=True, check=False, timeout=LONGEST
        )
        assert done.returncode == 0, f"{text}ends with {done.returncode}:\n{done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    def follow(self, only: tuple[str, ...], overlay: str, *more: str) -> Iterator[tuple[str, str]]:
        """Do what the page says, section by section, but for an overlay of its own.

        Yields
        ------
        tuple
            Of each block of commands its text and what they printed; first, before they are typed, the text and "".
        """
        mine = {"", WAYS.get(overlay, "the CronJob"), *more}
        for title, found in sections(PAGE):
            for whose, block in found if not only or title in only else ():
                if whose not in mine:
                    continue
                if block.title is not None:
                    (self.folder / block.title).write_text(block.text, encoding="utf-8")
                elif block.language == "sh":
                    text = block.text.replace("s,overlays/dry-run,base,", f"s,overlays/dry-run,{overlay},")
                    yield text, ""
                    if only and ("lastSuccessfulTime" in text or ("wait pod/" in text and overlay not in WAYS)):
                        self._hurry()
                    if "logs -l " in text:  # kubectl ends with an error where a pod that it has listed has just gone
                        wait_until(lambda: not self._ending(), "pods that end are gone")
                    yield text, self.type(text.replace("NODE", self.node.name))

    def _ending(self) -> list[str]:
        """Pods of placer that were told to end."""
        pods = self.api.items("/api/v1/namespaces/placer/pods")
        return [each["metadata"]["name"] for each in pods if "deletionTimestamp" in each["metadata"]]

    def _hurry(self) -> None:
        """Make a pass of the CronJob before the minute is over, where that is not what a test is about."""
        self.type(f"kubectl -n placer create job by-the-test-{time.monotonic_ns()} --from=cronjob/placer\n")

    def in_the_middle(self) -> None:
        """Let a pass bind slowly, gang after gang, and wait until it has begun."""
        first = len(self.gangs)
        names = [f"g{number}" for number in range(first, first + 12)]
        self.gangs += names
        before = sum(self.proxy.bound.values())
        self.proxy.rule = lambda _method, path, _times: Spoil(delay=2.0) if path.endswith("/binding") else None
        self.api.create(*(each for name in names for each in gang(name)))
        wait_until(lambda: sum(self.proxy.bound.values()) > before, "a binding")

    def bound(self) -> dict[str, int]:
        """Gang to how many of its pods are bound."""
        found = dict.fromkeys(self.gangs, 0)
        for each in self.api.items("/api/v1/namespaces/default/pods"):
            name = each["metadata"]["name"].partition("-")[0]
            if name in found and each["spec"].get("nodeName"):
                found[name] += 1
        return found

    def why_pending(self) -> list[str]:
        """Of each pod its name and the beginning of what passes, or others, say of why it is not placed."""
        found = []
        for each in self.api.items("/api/v1/namespaces/default/pods"):
            for condition in each["status"].get("conditions", []):
                reason = condition.get("message", "").partition(":")[0].partition(" ")[0]
                found.append(f"{each['metadata']['name']}: {reason}")
        return found

    def passes(self) -> list[tuple[Ended, dict[str, Any]]]:
        """Containers that have ended, each with the last line of its passes."""
        found = ((each, re.findall(r"^\{.*\}$", each.said, re.MULTILINE)) for each in list(self.node.ended))
        return [(each, json.loads(lines[-1])) for each, lines in found if lines]

    def everything(self) -> frozenset[str]:
        """Every object that there is: kind and group, namespace, name."""
        roots = ["/api/v1", *(f"/apis/{each['groupVersion']}" for each in self._groups())]
        found = set[str]()
        for root in roots:
            try:
                found.update(self._objects(root))
            except Refused as refusal:
                if refusal.status != 404:  # a kind whose definition was deleted meanwhile
                    raise
        return frozenset(each for each in found if not each.startswith(_PASSING))

    def _objects(self, root: str) -> Iterator[str]:
        group = "" if root == "/api/v1" else root.split("/")[2]
        for kind in self.api.get(root)["resources"]:
            if "/" in kind["name"] or "list" not in kind["verbs"]:
                continue
            for item in self.api.items(f"{root}/{kind['name']}"):
                metadata = item["metadata"]
                yield f"{kind['kind']}/{metadata.get('namespace', '')}/{metadata['name']} {group}"

    def _groups(self) -> Iterator[dict[str, str]]:
        for group in self.api.get("/apis")["groups"]:
            yield from group["versions"]

    def check_nothing_is_left(self) -> None:
        """Take away what was made for the test; then there is what there was before."""
        self.node.before_end = lambda: None
        self.proxy.rule = lambda *_: None
        pods, groups = "/api/v1/namespaces/default/pods", "/apis/scheduling.k8s.io/v1beta1/namespaces/default/podgroups"
        self.api.each(
            self.api.delete,
            [
                path
                for name in self.gangs
                for path in (f"{groups}/{name}", *(f"{pods}/{each}" for each in members(name)))
            ],
        )
        self.gangs.clear()
        try:
            wait_until(lambda: self.everything() == self.before)
        except TimeoutError:
            now = self.everything()
            assert (sorted(now - self.before), sorted(self.before - now)) == ([], [])


def members(gang: str) -> list[str]:
    return [f"{gang}-{number}" for number in range(SIZE)]


def gang(name: str) -> list[Document]:
    """One of Kubernetes itself, for which no definition of others is needed."""
    requests = {"cpu": "10m"}
    container = {"name": "main", "image": "registry.example.com/job:1", "resources": {"requests": requests}}
    spec = {"schedulerName": "placer", "schedulingGroup": {"podGroupName": name}, "containers": [container]}
    group = {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": SIZE}}},
    }
    return [group, *(pod(each, spec=spec) for each in members(name))]


def test_every_command_of_the_page_is_typed_below() -> None:
    """Whom blocks are for is one of those who follow the page; what stands before the first section has none."""
    found = [(whose, block) for _, each in sections(PAGE) for whose, block in each]
    assert {whose for whose, _ in found} == {"", "the CronJob", *WAYS.values(), "everything", "a node"}
    assert sum(block.language == "sh" for _, block in found) == PAGE.count("```sh\n")
    assert PAGE.count("<!--") == sum(whose != "" for whose, _ in found)
    assert set(LEAST) <= {title for title, _ in sections(PAGE)}


@pytest.fixture(scope="module")
def cluster_of_the_page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    """A server of its own, to which nothing was ever applied, with what makes a cluster of it."""
    folder = tmp_path_factory.mktemp("operating")
    (folder / "server").mkdir()
    (folder / "pods").mkdir()
    found = ControlPlane(_found(programs), folder / "server")
    for each in ("kube-controller-manager", "kube-scheduler"):
        _found(lambda name=each: program(found.programs, name))
    try:
        found.start()
        config = found.kubeconfig("kube-controller-manager")
        found.run(
            "kube-controller-manager",
            f"--kubeconfig={config}",
            f"--controllers={','.join(CONTROLLERS)}",
            "--leader-elect=false",
            "--secure-port=0",
        )
        found.start_kube_scheduler()
        api = Api(found.url, found.certificate, found.token)
        with (
            proxied(found, encrypted=True) as proxy,
            containers(found, api, folder / "pods", proxy.url) as node,
        ):
            operator = Operator(found, api, node, proxy)
            operator.before = operator.everything()
            yield operator
    finally:
        found.stop()


@pytest.fixture
def operator(cluster_of_the_page: Operator, tmp_path: Path) -> Operator:
    """In the root of the repository, before the first command."""
    assert cluster_of_the_page.everything() == cluster_of_the_page.before, "an earlier test has failed before its end"
    cluster_of_the_page.folder = folder = tmp_path / "repository"
    folder.mkdir()
    shutil.copytree(ROOT / "deploy", folder / "deploy", symlinks=True)
    cluster_of_the_page.node.ended.clear()
    cluster_of_the_page.proxy.bound.clear()
    return cluster_of_the_page


@pytest.mark.exhaustive
@pytest.mark.parametrize("overlay", ["base", "overlays/deployment"])
def test_a_new_operator_follows_the_page_from_the_first_command_to_the_last(operator: Operator, overlay: str) -> None:
    """The upgrade and the end come while a pass binds."""
    said: dict[str, str] = {}
    loop = overlay in WAYS

    def once() -> None:
        operator.node.before_end = lambda: None
        operator.in_the_middle()

    for text, printed in operator.follow((), overlay):
        said[text] = said.get(text, "") + printed
        if printed:
            if "umask" in text:
                is_of_the_account_alone(operator.folder / "account.kubeconfig", operator.control_plane.token)
            continue
        if loop and "placer.dev/paused-" in text:
            wait_until(lambda: PAUSED in operator.node.said(), "the loop has heard of the pause")
        elif "kubectl apply --prune" in text and "newTag" in text:
            if loop:
                operator.node.before_end = once  # the first of its processes that is told to end
            else:
                operator.in_the_middle()
        elif "reason=Released" in text:
            wait_until(lambda: GIANT in operator.why_pending(), "the pod without room is told why")
        elif "--cascade=foreground" in text:
            wait_until(lambda: set(operator.bound().values()) == {SIZE}, "all gangs of the upgrade")
            operator.in_the_middle()
    assert '"bindings": {"default/trial-0": "n1"' in found(said, "placer run --dry-run --save")
    assert '"dryRun"' in found(said, "status.lastSuccessfulTime")
    assert re.findall(r"trial-\d .* n1 ", found(said, "-o wide")) != []
    watched = found(said, "reason=Released")
    assert GIANT in watched
    assert "Released 2 pods for 1 node" in watched
    assert not re.findall(r"held-\d n1:", watched)
    assert loop or PAUSED in said["placer run\n"]
    assert "No resources found" in found(said, "validatingadmissionpolicybindings")
    # Each pod was bound once, and no gang in part, whoever ended when.
    assert set(operator.proxy.bound.values()) == {1}
    gangs = operator.bound()
    assert set(gangs.values()) == {0, SIZE}, gangs
    passes = operator.passes()
    assert {each.version for each, _ in passes} == {line["version"] for _, line in passes} == {"0.1.0", "0.1.1"}
    assert {each.code for each, _ in passes} == {0}, [each for each, _ in passes if each.code]
    assert any(line["interrupted"] for _, line in passes)
    # One that was to end may not have heard of its last bindings in time; above the server says that all are whole.
    assert all(line["incomplete"] == [] for _, line in passes if not line["interrupted"])
    operator.check_nothing_is_left()


def is_of_the_account_alone(file: Path, administrator: str) -> None:
    """Nobody else reads it, and it gives nobody the rights of an administrator."""
    assert file.stat().st_mode & 0o777 == 0o600
    assert administrator not in file.read_text(encoding="utf-8")


def found(said: Mapping[str, str], part: str) -> str:
    """What the one block printed that a text is part of."""
    (text,) = (printed for command, printed in said.items() if part in command)
    return text


@pytest.mark.exhaustive
@pytest.mark.parametrize("overlay", [each for each in OVERLAYS if each not in ("overlays/dry-run", *WAYS)])
def test_nothing_is_left_of_any_overlay(operator: Operator, overlay: str) -> None:
    """Installed, used and taken away as the page says."""
    jobs = []
    if overlay == "overlays/inqueue":  # is for where Volcano's controllers are
        jobs = [each for each in _found(lambda: resource_definitions("volcano")) if "batch.volcano.sh" in each.name]
        operator.api.install(jobs)
    said = {text: printed for text, printed in operator.follow(LEAST, overlay) if printed}
    assert re.findall(r"trial-\d .* n1 ", found(said, "-o wide")) != []
    assert "No resources found" in found(said, "validatingadmissionpolicybindings")
    assert {each.code for each, _ in operator.passes()} == {0}
    if jobs:
        operator.api.uninstall(*(each["metadata"]["name"] for file in jobs for each in definitions(file)))
    operator.check_nothing_is_left()


@pytest.mark.exhaustive
def test_nothing_is_left_of_all_that_may_be_beside_it(operator: Operator) -> None:
    operators = operator.folder / "operator.yaml"
    operators.write_text(OPERATOR, encoding="utf-8")
    operator.type(f"kubectl apply -f {operators}\nkubectl wait crd --all --for condition=established --timeout 60s\n")
    node = f"/api/v1/nodes/{operator.node.name}"
    for text, printed in operator.follow(LEAST, "base", "everything", "a node"):
        if printed:
            continue
        if "kubectl wait pod/trial-0" in text:
            for each in COMPONENTS:
                operator.type(f"kubectl apply -k deploy/{each}\n")
            capacity = {"network.aware.com/bandwidth": "10G"}
            operator.api.patch(f"{node}/status", {"status": {"capacity": capacity}})
    assert "network.aware.com/bandwidth" not in operator.api.get(node)["status"].get("capacity", {})
    operator.type(f"kubectl delete -f {operators}\n")
    operator.check_nothing_is_left()


@pytest.mark.exhaustive
def test_nothing_is_left_of_a_release_of_the_chart(operator: Operator) -> None:
    """The commands of ``deploy/README.md``, and in between a pass, which makes what no release knows."""
    page = (ROOT / "deploy" / "README.md").read_text(encoding="utf-8")
    section = page[page.index("### With Helm") :]
    (commands, *_) = [each.text for each in blocks(section) if each.language == "sh"]
    name, digest = "REGISTRY/placer@sha256:DIGEST", "registry.example.com/placer:0.1.0"
    helm_folder = _found(helm).parent
    assert name in commands
    for line in commands.replace(name, digest).splitlines():
        operator.type(f"export PATH=$PATH:{helm_folder}\n{line}\n")
        if line.startswith("helm install"):
            operator.type(
                "kubectl -n placer create job first --from=cronjob/placer\n"
                "kubectl -n placer wait job/first --for condition=complete --timeout 180s\n"
                "kubectl -n placer get lease placer\n"
            )
    operator.check_nothing_is_left()


@pytest.mark.exhaustive
@pytest.mark.parametrize(("overlay", "part"), [("base", "The CronJob"), ("overlays/deployment", "A loop")])
def test_what_to_do_about_an_alert_can_be_typed(operator: Operator, overlay: str, part: str) -> None:
    """The commands for one way of running, in their order, with names in place of what is in capitals."""
    require("jq", "apt-get install jq")
    operators = operator.folder / "operator.yaml"
    operators.write_text(OPERATOR, encoding="utf-8")
    operator.type(f"kubectl apply -f {operators}\nkubectl wait crd --all --for condition=established --timeout 60s\n")
    typed = []
    for text, printed in operator.follow(LEAST, overlay, "everything"):
        if not printed and "kubectl delete -f trial.yaml" in text:
            operator.type("kubectl apply -k deploy/monitoring\n")
            operator.api.create(
                {
                    "apiVersion": "topology.node.k8s.io/v1alpha2",
                    "kind": "NodeResourceTopology",
                    "metadata": {"name": operator.node.name},
                    "zones": [],
                }
            )
            if overlay == "base":  # so that what is made by hand is not cleared away by the success of the next
                operator.type('kubectl -n placer patch cronjob placer -p \'{"spec":{"suspend":true}}\'\n')
            for command in commands_of(part):
                if not command.startswith(tuple(UNTYPED)):
                    pods = "kubectl -n placer get pods -l app=placer -o jsonpath='{.items[0].metadata.name}'"
                    jobs = "kubectl -n placer get jobs --field-selector status.successful=1 --sort-by .status.startTime"
                    names = {
                        "NODE": operator.node.name,
                        "POD": f"$({pods})",
                        "JOB": f"$({jobs} -o jsonpath='{{.items[-1:].metadata.name}}')",
                    }
                    for name, value in names.items():
                        command = re.sub(rf"\b{name}\b(?!:)", value, command)
                    operator.type(f"{command}\n", whole="| head" not in command)
                    typed.append(command)
            operator.type(f"kubectl uncordon {operator.node.name}\n")
    assert len(typed) >= (12 if overlay == "base" else 30)
    operator.type(f"kubectl delete -f {operators}\n")
    operator.check_nothing_is_left()


def commands_of(part: str) -> list[str]:
    """The commands of a part of the page of alerts."""
    page = (ROOT / "docs" / "alerts.md").read_text(encoding="utf-8")
    (section,) = (each for each in page.split("\n## ") if each.startswith(part))
    text = "".join(each.text for each in blocks(section) if each.language == "sh")
    return [line for line in text.replace("\\\n", " ").splitlines() if line]


#: Beginnings of commands of ``docs/alerts.md`` that nothing here can type, and why.
UNTYPED = {
    "kubectl -n placer port-forward": "is for as long as one looks, and the kubelet here forwards nothing",
    "curl": "asks what is forwarded",
    "kubectl -n placer exec": "runs in a container, and the kubelet here runs none; tests/cli/test_inspection.py",
    "kubectl -n placer logs -l app=placer --tail=100 | grep costs:": "shows what only the signal brings",
    "kubectl -n placer edit": "opens an editor",
    "kubectl -n placer logs -l app=placer --previous": "no container was begun anew here",
    "placer preempt": "no gang waits here; test_preempt_apply_live.py has one",
    "kubectl -n placer rollout undo": "nothing came with the last change, since there was none",
}

#: The kinds of an operator of Prometheus that ``deploy/monitoring`` has objects of.
OPERATOR = "---".join(
    f"""
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: {kind.lower()}s.monitoring.coreos.com}}
spec:
  group: monitoring.coreos.com
  names: {{kind: {kind}, plural: {kind.lower()}s}}
  scope: Namespaced
  versions:
    - name: v1
      served: true
      storage: true
      schema: {{openAPIV3Schema: {{type: object, x-kubernetes-preserve-unknown-fields: true}}}}
"""
    for kind in ("PodMonitor", "PrometheusRule")
)
