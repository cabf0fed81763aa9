"""`placer defrag --apply` on a real API server: room that is wanted is made, and nothing of ours gets it meanwhile."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cluster.api import Api
from tests.cluster.applied import Applied, evictions, told
from tests.cluster.controllers import PODS, Controllers, owned, priority_class
from tests.cluster.passes import bound, overfull
from tests.cluster.proxy import Proxy
from tests.support import Document, hyper_node, node, pod_group

WANT = ("--want", "1 x 2 x cpu=4 @ 1")
FREE = ("--free-domains", "1@1")


def racks(cluster: Api) -> list[Document]:
    """Three racks of a node of 8 each: r0 has a pod of 2, r1 one of 4, r2 one of 4; ``late`` of 6 waits.

    Room for two pods of 4 in one rack, or an empty one, is made by moving the pod of 2; ``late`` fits nowhere
    until then.
    """
    running = [
        owned(f"web{number}", f"web{number}", "low", f"n{number}", cpu=2 + 2 * (number > 0)) for number in range(3)
    ]
    cluster.create(priority_class("low", 10))
    cluster.create(*(node(f"n{number}", cpu=8) for number in range(3)))
    cluster.create(*(hyper_node(f"r{number}", 1, nodes=(f"n{number}",)) for number in range(3)))
    cluster.create(*running, owned("late", "late", "low", cpu=8))
    return running


@pytest.mark.parametrize("asked", [WANT, FREE])
def test_what_is_in_the_way_is_moved_and_the_room_stays_free(
    asked: tuple[str, ...], cluster: Api, defrag: Applied, proxy: Proxy
) -> None:
    controllers = Controllers(cluster, racks(cluster))
    with controllers.running():
        done = defrag(*asked)
    (move,) = done["moves"]
    assert (move["pod"], move["from"]) == ("web0", "n0")
    assert done["applied"]["moved"] == {"default/web0": "default/web0-again"}
    assert done["applied"]["bound"] == {"default/web0-again": move["to"]}
    assert (done["applied"]["trouble"], done["applied"]["troubles"]) == (None, [])
    assert bound(cluster) == {"web0-again": move["to"], "web1": "n1", "web2": "n2"}
    gain = "HyperNode r0 is empty" if asked is FREE else "there is room for 1 group (2 pods), as was asked for"
    assert told(cluster, "Defragmented") == {
        "web0": f"evicted from Node n0 to be placed on Node {move['to']} so that {gain}"
    }
    assert evictions(proxy) == {"web0": 2}
    assert overfull(cluster) == []


def test_a_job_in_a_file_is_wanted_and_not_made(cluster: Api, defrag: Applied, tmp_path: Path) -> None:
    controllers = Controllers(cluster, racks(cluster))
    job = [
        pod_group("train", minMember=2, networkTopology={"mode": "hard", "highestTierAllowed": 1}),
        *(owned(f"train-{number}", "train", "low", group="train", cpu=4) for number in range(2)),
    ]
    (tmp_path / "job.json").write_text("\n".join(map(json.dumps, job)))
    with controllers.running():
        done = defrag("--want", str(tmp_path / "job.json"))
    assert done["applied"]["moved"] == {"default/web0": "default/web0-again"}
    assert not {"train-0", "train-1"} & {each["metadata"]["name"] for each in cluster.items(PODS)}


def test_no_pod_is_moved_for_less_than_was_asked_for(cluster: Api, defrag: Applied) -> None:
    racks(cluster)
    done = defrag("--free-domains", "2@1", code=5)
    assert done["freed"] == ["r0"]
    assert done["applied"]["evicted"] == []
    assert bound(cluster) == {f"web{number}": f"n{number}" for number in range(3)}
