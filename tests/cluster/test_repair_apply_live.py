"""`placer repair --apply` on a real API server: what ran on a lost node runs elsewhere, or it is told why not."""

from __future__ import annotations

from tests.cluster.api import Api
from tests.cluster.applied import Applied, evictions, told
from tests.cluster.controllers import PODS, Controllers, owned, priority_class
from tests.cluster.passes import bound, overfull
from tests.cluster.proxy import Proxy
from tests.support import Document, hyper_node, node, pod_group


def rack(cluster: Api, *, spare: int) -> list[Document]:
    """A rack of three nodes of which n0 is lost with half of ``train``, and spare nodes outside of it.

    ``train`` stays in its rack, where n1 is full and n2 has a pod ``web`` in the way; ``idle`` waits and takes no part.

    Returns
    -------
    list[Document]
        The pods that run.
    """
    running = [
        *(owned(f"train-{number}", "train", "low", f"n{number}", group="train", cpu=8) for number in range(2)),
        owned("web", "web", "low", "n2", cpu=4),
    ]
    cluster.create(priority_class("low", 10))
    names = [*(f"n{number}" for number in range(3)), *(f"s{number}" for number in range(spare))]
    cluster.create(*(node(name, cpu=8) for name in names))
    cluster.create(hyper_node("rack", 1, nodes=tuple(names[:3])))
    cluster.create(pod_group("train", minMember=2, networkTopology={"mode": "hard", "highestTierAllowed": 1}), *running)
    cluster.create(owned("idle-0", "idle", "low", cpu=1))
    return running


def without_web(cluster: Api) -> list[Document]:
    """The same with room in the rack."""
    running = rack(cluster, spare=0)
    cluster.delete(f"{PODS}/web")
    return running[:2]


def lose(cluster: Api, name: str) -> None:
    cluster.patch(f"/api/v1/nodes/{name}/status", {"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}})


def test_pods_of_a_lost_node_are_placed_again(cluster: Api, repair: Applied, proxy: Proxy) -> None:
    """n0 is not Ready and its kubelet ends nothing, so the pod there stays on its way out."""
    controllers = Controllers(cluster, without_web(cluster), lost={"n0"})
    lose(cluster, "n0")
    with controllers.running():
        done = repair()
    assert done["lost"] == ["n0"]
    assert done["applied"]["moved"] == {"default/train-0": "default/train-0-again"}
    assert done["applied"]["bound"] == {"default/train-0-again": "n2"}
    assert done["applied"]["trouble"] is None
    assert told(cluster, "NodeLost") == {"train-0": "evicted from Node n0, which is lost, to be placed on Node n2"}
    assert evictions(proxy) == {"train-0": 2}  # asked whether, and then done
    assert bound(cluster) == {"train-0": "n0", "train-0-again": "n2", "train-1": "n1"}


def test_what_is_in_the_way_is_moved(cluster: Api, repair: Applied) -> None:
    controllers = Controllers(cluster, rack(cluster, spare=1), lost={"n0"})
    with controllers.running():
        done = repair("--lost", "n0")
    assert [(each["pod"], each["to"]) for each in done["moves"]] == [("web", "s0")]
    note = "evicted from Node n2 to be placed on Node s0 so that there is room for 1 pod of lost nodes"
    assert told(cluster, "Defragmented") == {"web": note}
    assert done["applied"]["evicted"][-1] == "default/train-0"
    there = bound(cluster)
    assert (there["web-again"], there["train-0-again"], there["train-1"]) == ("s0", "n2", "n1")
    assert "idle-0" not in there
    assert overfull(cluster) == []
    assert controllers.ended == ["web"]


def test_what_no_controller_makes_again_is_told(cluster: Api, repair: Applied) -> None:
    without_web(cluster)
    with Controllers(cluster, [], lost={"n0"}).running():
        done = repair("--lost", "n0", "--gone-within", "2", code=6)
    assert done["applied"]["evicted"] == done["applied"]["notMoved"] == ["default/train-0"]
    assert done["applied"]["trouble"] == "1 pod of lost nodes not placed again: default/train-0"
