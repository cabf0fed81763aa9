"""A server that refuses, hangs, forgets, breaks off or dies during a pass; a real one, behind a proxy or killed."""

from __future__ import annotations

from typing import Any

import pytest

from placer.passes.cluster import Client
from placer.passes.cluster.reading.client import Response, Unanswered
from tests.cluster.api import Api, Refused
from tests.cluster.faults import half_bound
from tests.cluster.passes import Passes, bound, gang, overfull
from tests.cluster.proxy import Proxy, Spoil
from tests.cluster.things import live_pod
from tests.support import node


def spoilt(method: str, path: str, times: int) -> Spoil | None:
    """Every binding fails once, each in one of eight ways, two of them after it has been made."""
    if not path.endswith("/binding") or times > 1:
        return None
    ways = (
        Spoil(429, headers=(("Retry-After", "0"),)),
        Spoil(500),
        Spoil(503),
        Spoil(409),
        Spoil(0),
        Spoil(504, forwarded=True),
        Spoil(0, forwarded=True),
        Spoil(401),
    )
    return ways[int(path.split("/")[-2].rpartition("-")[2]) % len(ways)]


def test_every_answer_spoilt_once_and_all_are_bound_once(cluster: Api, passes: Passes, proxy: Proxy) -> None:
    cluster.create(*(node(f"n{number}") for number in range(5)), *gang("train", 40))
    proxy.rule = spoilt
    told = passes()
    assert (told["bound"], told["incomplete"], told["overfull"]) == (40, [], [])
    assert len(bound(cluster)) == 40
    assert proxy.bindings() == {f"train-{number}": 1 for number in range(40)}
    assert overfull(cluster) == []


@pytest.mark.parametrize("fenced", [True, False])
def test_a_binding_that_lands_after_its_deadline_takes_no_room_that_is_anothers(
    cluster: Api, passes: Passes, monkeypatch: pytest.MonkeyPatch, fenced: bool
) -> None:
    """It is held back on its way. When it arrives the pod has another version, and it is refused; where the pod could
    not be written to, its room was kept for as long as the pass lasted, and it is told as not known.
    """
    monkeypatch.setattr("placer.passes.cluster.writing.plan_execution._EVENTS", 1.0)  # none comes of what is held back
    cluster.create(node("n1"), *gang("train", 2, cpu=4), live_pod("lone", cpu=4))
    held: list[tuple[str, Any]] = []
    sent = Client.send

    def send(self: Client, method: str, path: str, body: Any = None, **options: Any) -> Response:
        if path.endswith("/train-1/binding"):
            held.append((path, body))
            raise Unanswered("held back")
        if method == "PATCH" and path.endswith("/train-1/status") and not fenced:
            return Response(403, b"{}")
        return sent(self, method, path, body, **options)

    monkeypatch.setattr(Client, "send", send)
    told = passes("--gang-grace", "0.5", code=6)
    (found,) = half_bound(told).values()
    assert found["missing"] == {"default/train-1": "held back"}
    assert set(bound(cluster)) <= {"train-0", "lone"}
    path, body = held[0]
    if fenced:
        with pytest.raises(Refused, match="409"):
            cluster.call("POST", path, body)
        assert "train-1" not in bound(cluster)
    else:
        cluster.call("POST", path, body)
    assert overfull(cluster) == []
    monkeypatch.undo()
    passes(code=None)
    assert overfull(cluster) == []
    assert {"train-0", "train-1"} <= set(bound(cluster))
