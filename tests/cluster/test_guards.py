"""What passes are kept to, as the snapshot says it: the same snapshot, decided again, gives the same."""

from __future__ import annotations

from pathlib import Path

from placer.passes.cluster.reading.earlier_passes import prepared
from placer.passes.cluster.reading.guards import Guards, guarded
from placer.passes.cluster.reading.snapshot import Snapshot
from placer.problem import Key
from placer.problem.placement import Placement
from placer.rules import verify
from tests.cluster.snapshots import snapshot_of
from tests.cluster.test_earlier_passes import decided
from tests.support import Document, node, pod


def waiting(
    name: str,
    namespace: str = "default",
    scheduler: str = "placer",
    node: str | None = None,
    spec: Document | None = None,
) -> Document:
    metadata = {"name": name, "namespace": namespace, "uid": name}
    return pod(name, node=node, metadata=metadata, spec={"schedulerName": scheduler, **(spec or {})}, cpu=1)


def cluster() -> Snapshot:
    return snapshot_of(
        [
            node("n1", cpu=8, labels={"pool": "batch"}),
            node("n2", cpu=8, labels={"pool": "web"}),
            waiting("ours"),
            waiting("theirs", "tenant"),
            waiting("others", "tenant", scheduler="volcano"),
            waiting("there", "tenant", node="n1"),
        ]
    )


def test_without_guards_it_is_the_same_snapshot() -> None:
    taken = cluster()
    assert guarded(taken, Guards()) is taken
    assert guarded(taken, Guards(frozenset({"default", "tenant"}), "pool")) is taken


def test_pods_of_other_namespaces_are_nobodys_to_decide_about(tmp_path: Path) -> None:
    made = guarded(cluster(), Guards(frozenset({"default"})))
    assert decided(made, tmp_path).keys() == {"ours"}
    instance = prepared(made, ()).instance
    assert {each.key for each in instance.pending} == {Key("default", "ours")}
    assert instance.pods[Key("tenant", "there")].node == "n1"  # what is bound counts
    assert instance.set_aside.gated == 1
    assert instance.set_aside.other_schedulers == {"volcano": 1}


def test_nodes_without_the_labels_get_nothing(tmp_path: Path) -> None:
    for selector, where in (("pool=web", "n2"), ("pool!=web", "n1"), ("pool in (web), pool", "n2")):
        made = guarded(cluster(), Guards(node_selector=selector))
        assert set(decided(made, tmp_path).values()) == {where}
    assert decided(guarded(cluster(), Guards(node_selector="zone")), tmp_path) == {}


def test_not_even_pods_that_tolerate_every_taint(tmp_path: Path) -> None:
    spec = {"tolerations": [{"operator": "Exists"}], "nodeSelector": {"pool": "web"}}
    taken = snapshot_of(
        [node("n1", labels={"pool": "batch"}), node("n2", labels={"pool": "web"}), waiting("p", spec=spec)]
    )
    assert decided(guarded(taken, Guards(node_selector="pool=web")), tmp_path) == {"p": "n2"}
    assert decided(guarded(taken, Guards(node_selector="pool=batch")), tmp_path) == {}


def test_the_verifier_keeps_it() -> None:
    """A placement onto a node that the selector does not meet breaks a rule of the guarded instance."""
    instance = prepared(guarded(cluster(), Guards(node_selector="pool=web")), ()).instance
    placement = Placement.of({Key("default", "ours"): "n1"})
    assert verify(instance, placement)
