"""The functions of ``import placer``: what they take, what they give, what they say of wrong arguments."""

from __future__ import annotations

import gzip
import inspect
import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import placer
from placer.base.errors import UsageError
from placer.cli import main
from placer.problem import Instance
from placer.problem.result import Result
from tests.support import hyper_node, node, pod, pod_group

LIMITS: dict[str, Any] = {"method": "greedy", "workers": 1}


@pytest.fixture(scope="module")
def model() -> placer.Model:
    """Two racks of two nodes, a running pod, and two gangs that each want a rack: one of them waits."""
    found = placer.Model()
    for name in ("rack-1", "rack-2"):
        found.add_rack(name, nodes=2, cpu=32, memory="64Gi", gpus=8)
    found.add_rack("spine", ["rack-1", "rack-2"], tier=2)
    found.add_pods("notebook", gpus=4, node="rack-1-0", labels={"app": "notebook"})
    found.add_gang("train", 2, gpus=8, tier=1, priority=5)
    found.add_gang("other", 2, gpus=8, tier=1)
    return found


@pytest.fixture(scope="module")
def instance(model: placer.Model) -> Instance:
    return model.instance()


@pytest.fixture(scope="module")
def result(instance: Instance) -> Result:
    return placer.solve(instance, **LIMITS)


# -------------------------------------------------------------------------------------------------------------- the top


def test_every_name_is_found_and_every_function_has_a_docstring_with_its_parameters() -> None:
    assert set(dir(placer)) == set(placer.__all__)
    for name in set(placer.__all__) - {"Model", "__version__"}:
        function = getattr(placer, name)
        text = inspect.getdoc(function) or ""
        named = " ".join(line for line in text.splitlines() if not line.startswith(" ")).replace(",", " ").split()
        missing = [each for each in inspect.signature(function).parameters if each not in named]
        assert not missing, f"{name}: {missing}"


def test_a_name_that_is_not_there_is_an_error() -> None:
    with pytest.raises(AttributeError, match="module 'placer' has no attribute 'sovle'"):
        _ = placer.sovle  # type: ignore[attr-defined]


# -------------------------------------------------------------------------------------------------------------- reading


def test_objects_in_memory_are_read_as_files_are(model: placer.Model, instance: Instance, tmp_path: Path) -> None:
    model.save(tmp_path / "model.yaml")
    assert placer.read(tmp_path / "model.yaml").pods == instance.pods
    assert placer.read(*model.documents).pods == instance.pods
    assert placer.read(iter(model.documents)).groups == instance.groups
    half = [each for each in model.documents if each["kind"] != "Pod"]
    assert placer.read(half, with_=[each for each in model.documents if each["kind"] == "Pod"]).pods == instance.pods


def test_objects_of_kubernetes_own_client_are_read() -> None:
    from kubernetes import client

    requests = client.V1ResourceRequirements(requests={"cpu": "1"})
    spec = client.V1PodSpec(containers=[client.V1Container(name="c", resources=requests)], node_name="n1")
    items = [client.V1Pod(metadata=client.V1ObjectMeta(name="p", namespace="ml"), spec=spec)]
    there = client.V1NodeStatus(allocatable={"cpu": "4"})
    one = client.V1Node(metadata=client.V1ObjectMeta(name="n1"), status=there)
    high = client.V1PriorityClass(metadata=client.V1ObjectMeta(name="high"), value=7)
    found = placer.read(one, client.V1PodList(items=items), high)
    assert [(str(key), each.node) for key, each in found.pods.items()] == [("ml/p", "n1")]
    assert list(found.nodes) == ["n1"]
    assert found.findings == placer.read(one, client.V1PodList(items=items)).findings


def test_objects_of_other_clients_are_read_by_what_they_hold() -> None:
    document = node("n1")
    for each in (
        SimpleNamespace(raw=document),
        SimpleNamespace(obj=document),
        SimpleNamespace(to_dict=lambda: document),
    ):
        assert list(placer.read(each).nodes) == ["n1"]


def test_what_is_no_object_is_an_error_that_says_what_was_expected() -> None:
    with pytest.raises(TypeError, match="source 2: found int 3, expected a path, a Kubernetes object"):
        placer.read(node("n1"), 3)


def test_without_sources_the_cluster_is_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from placer.kube.manifests import Text
    from placer.passes import cluster

    asked: list[object] = []
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": [node("n1")]}).encode()

    def take(client: object, name: str, watch: object) -> object:
        asked.append((client, name, callable(watch)))
        return SimpleNamespace(text=lambda: Text("cluster", text))

    monkeypatch.setattr(cluster.Client, "connect", lambda kubeconfig, context: (kubeconfig, context))
    monkeypatch.setattr(cluster, "take", take)
    assert list(placer.read(context="prod").nodes) == ["n1"]
    assert asked == [((None, "prod"), "*", True)]
    with pytest.raises(UsageError, match="kubeconfig, context: found sources next to them"):
        placer.read(tmp_path, context="prod")


# ------------------------------------------------------------------------------------------------------------ arguments


@pytest.mark.parametrize("name", ["solve", "preempt", "repair", "audit", "compare", "explain"])
def test_an_instance_of_another_type_is_an_error_that_says_how_to_make_one(name: str) -> None:
    message = r"instance: found str, expected an Instance; placer.read\('core.yaml'\) makes one"
    with pytest.raises(TypeError, match=message):
        getattr(placer, name)("core.yaml")


def test_a_placement_of_another_type_is_an_error(instance: Instance) -> None:
    with pytest.raises(TypeError, match="placement: found int, expected a Placement"):
        placer.verify(instance, 3)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="for a node, expected the name of one of its nodes"):
        placer.score(instance, {"default/train-0": "nowhere"})


def test_limits_are_seconds_or_durations(instance: Instance) -> None:
    assert placer.solve(instance, time_limit="1m30s", **LIMITS).time_limit == 90
    with pytest.raises(UsageError, match="time_limit: found '10x', expected seconds or a duration such as 10s"):
        placer.solve(instance, time_limit="10x")
    with pytest.raises(TypeError, match="time_limit: found list, expected seconds"):
        placer.solve(instance, time_limit=[1])  # type: ignore[arg-type]


def test_progress_is_shown_where_it_is_asked_for(instance: Instance, capsys: pytest.CaptureFixture[str]) -> None:
    placer.solve(instance, **LIMITS)
    assert capsys.readouterr().err == ""
    placer.solve(instance, time_limit=None, display=True, **LIMITS)
    assert "4 pending pods, 4 nodes: greedy" in capsys.readouterr().err


# -------------------------------------------------------------------------------------------------------------- results


def test_a_result_is_saved_and_read_again(instance: Instance, result: Result, tmp_path: Path) -> None:
    for name in ("placement.yaml", "placement.json.gz"):
        result.save(tmp_path / name)
        assert placer.read_placement(tmp_path / name) == result.placement
    result.save(tmp_path / "bindings.json", bindings=True)
    assert json.loads((tmp_path / "bindings.json").read_text())["items"][0]["kind"] == "Binding"
    assert gzip.decompress((tmp_path / "placement.json.gz").read_bytes()).startswith(b"{")
    with pytest.raises(UsageError, match=r"placement.txt: found no known ending"):
        result.save(tmp_path / "placement.txt")


def test_bindings_are_those_of_the_placement(result: Result) -> None:
    assert [(str(each.pod), each.node) for each in result.bindings] == [
        ("default/train-0", "rack-2-0"),
        ("default/train-1", "rack-2-1"),
    ]
    assert replace(result, placement=None).bindings == ()


def test_the_summary_is_that_of_the_command(result: Result) -> None:
    text = result.summary()
    assert "pods placed      2 of 4 pending" in text
    assert not any(line.endswith(" ") for line in text.splitlines())
    assert "rack-2-0" in result.summary(wide=True)
    assert "2 of 4 pending" in result._repr_html_()


def test_verify_and_score_take_a_placement_in_every_form(instance: Instance, result: Result) -> None:
    assert placer.verify(instance, result) == []
    assert placer.score(instance, result) == placer.score(instance, {str(b.pod): b.node for b in result.bindings})
    (broken,) = placer.verify(instance, {"default/train-0": "rack-2-0"})
    assert broken.rule == "C5"


# --------------------------------------------------------------------------------------------------------- what decides


def test_a_group_that_waits_is_explained(instance: Instance) -> None:
    (found,) = placer.explain(instance, "default/other", time_limit="20s")
    assert found.corrections[0][0].code == "Outcompeted"
    assert not found.admitted
    assert str(found).startswith("PodGroup default/other: fits alone; with this placement")
    assert "\n  - " in str(found)
    with pytest.raises(UsageError, match="found one that was changed, expected one as"):
        placer.explain(replace(instance), "default/other")


def test_a_file_that_changed_since_is_not_explained(model: placer.Model, tmp_path: Path) -> None:
    model.save(tmp_path / "model.yaml")
    instance = placer.read(tmp_path / "model.yaml")
    (tmp_path / "model.yaml").write_text(json.dumps(node("n1")))
    with pytest.raises(UsageError, match="its files changed since they were read"):
        placer.explain(instance)


def test_plans_say_what_their_commands_print(
    model: placer.Model, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model.save(tmp_path / "model.yaml")
    path = str(tmp_path / "model.yaml")
    instance = placer.read(path)
    plans = {
        ("defrag", "--want", "2 x 2 x nvidia.com/gpu=8 @ 1"): placer.defrag(instance, "2 x 2 x nvidia.com/gpu=8 @ 1"),
        ("repair", "--lost", "rack-1-0"): placer.repair(instance, ["rack-1-0"]),
        ("preempt", "--for", "default/other"): placer.preempt(instance, "default/other"),
    }
    for (command, *options), found in plans.items():
        main([command, path, *options])
        # Both are answers of their own, and the seconds that each took are no words of the plan.
        said, printed = (re.sub(r"in \d+ s:", "in N s:", each) for each in (found.summary(), capsys.readouterr().out))
        assert said.split() == printed.split()
        assert placer.verify(instance, found) == []
        assert "notebook-0" in placer.report(instance, found, tmp_path / f"{command}.html").read_text()
    with pytest.raises(UsageError, match="want, free_domains: found both or neither"):
        placer.defrag(instance)


def test_what_runs_is_audited(instance: Instance) -> None:
    assert [(each.group.name, each.score) for each in placer.audit(instance)] == [("notebook-0", 1.0)]


def first_node(instance: Instance) -> dict[str, str]:
    """A policy that breaks rules."""
    return {str(pod.key): next(iter(instance.nodes)) for pod in instance.pending}


def test_policies_are_names_functions_placements_and_results(instance: Instance, result: Result) -> None:
    own: dict[str, Any] = {
        "kube-default": None,
        "own": first_node,
        "mapped": {"default/train-0": "rack-2-0"},
        "solved": result,
    }
    rows = placer.compare(instance, own, workers=1)
    assert [(row.policy, row.error) for row in rows] == [(name, None) for name in own]
    assert rows[1].violations["C2"] > 0
    assert rows[3].placed_pods == 2
    assert rows.summary().startswith("4 pending pods, 4 nodes, 3 HyperNodes\n")
    assert "solved" in rows._repr_html_()
    with pytest.raises(UsageError, match="expected one of a module, which another process can import"):
        placer.compare(instance, {"own": lambda _: {}})


# -------------------------------------------------------------------------------------------------------------- showing


def test_the_report_is_written(instance: Instance, result: Result, tmp_path: Path) -> None:
    target = placer.report(instance, result, tmp_path / "report.html")
    assert target.read_text().startswith("<!")
    assert "train-0" in target.read_text()
    with pytest.raises(UsageError, match="found no known ending"):
        placer.report(instance, result, tmp_path / "report.txt")


def test_a_placement_is_drawn_with_a_block_for_each_pod(instance: Instance, result: Result) -> None:
    from matplotlib.figure import Figure

    axes = placer.plot(instance, result, title="racks", axes=Figure().subplots())
    assert sorted(each.get_height() for each in axes.patches) == [4, 8, 8]
    assert (axes.get_title(), axes.get_ylabel()) == ("racks", "GPUs")
    bare = placer.read(node("n1", cpu=8), pod("p", cpu=4))
    axes = placer.plot(bare, {"default/p": "n1"}, axes=Figure().subplots())
    assert [each.get_height() for each in axes.patches] == [5]


def test_what_is_generated_can_be_read() -> None:
    made = placer.generate("planted", nodes=4, leaf_size=2, seed=7)
    assert placer.read(made).pending
    with pytest.raises(UsageError, match="found option 'nods'"):
        placer.generate("planted", nods=4)


# -------------------------------------------------------------------------------------------------------------- a model


def test_a_model_makes_the_objects_that_it_says() -> None:
    model = placer.Model()
    model.add_node("n1", cpu=8, resources={"example.com/nic": 2}, labels={"zone": "a"})["spec"] = {
        "unschedulable": True
    }
    model.add(node("n2", cpu=2))
    model.add_rack("r", ["n1", "n2"])
    model.add_gang("g", 3, min_member=2, namespace="ml", cpu="500m")
    found = model.instance()
    assert found.nodes["n1"].labels["zone"] == "a"
    assert (
        found.groups
        == placer.read(
            node("n2"),
            pod_group("g", "ml", minMember=2),
            *(pod(f"g-{i}", group="g", namespace="ml", cpu="500m") for i in range(3)),
        ).groups
    )
    assert (
        found.topology.hyper_nodes.keys()
        == placer.read(hyper_node("r", 1, nodes=("n2",)), node("n2")).topology.hyper_nodes.keys()
    )
    assert {each.node for each in model.solve(**LIMITS).bindings} == {"n2"}


def test_names_of_an_instance_are_those_that_readers_look_for(instance: Instance) -> None:
    assert {"nodes", "pods", "groups", "pending", "topology", "findings"} <= set(dir(instance))
    assert not {"average_shares", "leaving_spreads", "keeping_held"} & set(dir(instance))
    assert repr(placer.read(node("n1"))) == "<Instance: 1 node, 0 pods, 0 of them pending in 0 groups>"


def test_the_package_alone_imports_nothing_of_it() -> None:
    program = "import sys, placer; dir(placer); print(*sorted(each for each in sys.modules if 'placer' in each))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "placer placer.base placer.base.version\n"
