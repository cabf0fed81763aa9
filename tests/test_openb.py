"""The converter of the openb lists, on lists made for the purpose: the trace itself is not shipped."""

from __future__ import annotations

import runpy
import sys
from collections import Counter
from pathlib import Path

import pytest

from placer.kube.manifests import load
from placer.problem import Instance
from placer.problem.instance_builder import make_instance

FOLDER = Path(__file__).parent.parent / "instances" / "openb"

NODES = """\
sn,cpu_milli,memory_mib,gpu,model
n-0,64000,262144,2,P100
n-1,96000,393216,8,G2
n-2,96000,393216,8,G3
"""
PODS = """\
name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
any,11300,49152,1,1000,,LS,Running,0,9,0
part,6000,12288,1,460,,LS,Running,1,9,1
none,4000,8192,0,0,,BE,Failed,2,9,
one,8000,16384,8,1000,G2,BE,Failed,3,9,
two,8000,16384,2,1000,G2|G3,Guaranteed,Pending,4,9,
"""


def convert(monkeypatch: pytest.MonkeyPatch, folder: Path, *arguments: str, pods: str = PODS) -> Instance:
    (folder / "nodes.csv").write_text(NODES)
    (folder / "pods.csv").write_text(pods)
    files = [str(folder / name) for name in ("nodes.csv", "pods.csv", "out.json.gz")]
    monkeypatch.setattr(sys, "argv", ["convert.py", *files[:2], *arguments, "-o", files[2]])
    runpy.run_path(str(FOLDER / "convert.py"), run_name="__main__")
    return make_instance(load([files[2]]))


def where(instance: Instance) -> dict[str, list[str]]:
    """The nodes that each pod is admitted on."""
    return {
        pod.name: [name for name, node in instance.nodes.items() if pod.constraints.admits(node)]
        for pod in instance.pending
    }


def test_whole_gpus_only_and_types_as_selectors(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    instance = convert(monkeypatch, tmp_path)
    assert instance.findings == ()
    assert where(instance) == {"any": ["n-0", "n-1", "n-2"], "one": ["n-1"], "two": ["n-1", "n-2"]}


def test_units(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    instance = convert(monkeypatch, tmp_path, "--first", "1")
    (pod,) = instance.pending
    assert {name: pod.requests[name] for name in ("cpu", "memory", "nvidia.com/gpu")} == {
        "cpu": 11_300,
        "memory": 49_152 * 2**20,
        "nvidia.com/gpu": 1,
    }
    assert instance.nodes["n-0"].allocatable["memory"] == 256 * 2**30


def test_repeated_until_the_load_is_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    instance = convert(monkeypatch, tmp_path, "--load", "1.5", "--seed", "3")
    asked = sum(pod.requests["nvidia.com/gpu"] for pod in instance.pending)
    assert 27 <= asked < 27 + 8
    assert {pod.name.split("-")[0] for pod in instance.pending} == {"any", "one", "two"}


def test_a_type_that_can_hold_the_pod(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    many = PODS.splitlines()[0] + "\n" + "".join(f"p{i},8000,16384,8,1000,,LS,,0,0,0\n" for i in range(40))
    chosen = Counter(
        tuple(nodes) for nodes in where(convert(monkeypatch, tmp_path, "--typed", "1", pods=many)).values()
    )
    assert set(chosen) == {("n-1",), ("n-2",)}


def test_a_list_without_the_columns(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="found no column gpu_spec, qos, expected"):
        convert(monkeypatch, tmp_path, pods="name,cpu_milli,memory_mib,num_gpu,gpu_milli\n")
