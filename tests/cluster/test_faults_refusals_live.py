"""A server that refuses: one object, for a while, or everything; a real one behind a proxy."""

from __future__ import annotations

import pytest

from tests.cluster.api import Api
from tests.cluster.passes import Passes, gang
from tests.cluster.proxy import Proxy, Rule, Spoil
from tests.cluster.things import live_pod
from tests.examples import exhaustive
from tests.support import node

GROUPS = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups"


def refusing(method: str, end: str, spoil: Spoil, times: int = 1_000_000) -> Rule:
    def rule(asked: str, path: str, count: int) -> Spoil | None:
        return spoil if asked == method and path.endswith(end) and count <= times else None

    return rule


@pytest.mark.parametrize("status", [403, 422, 500])
def test_a_group_whose_status_is_refused_is_skipped_alone(
    status: int, cluster: Api, passes: Passes, proxy: Proxy
) -> None:
    cluster.create(node("n1"), *gang("odd", 1), *gang("fine", 1))
    proxy.rule = refusing("PATCH", "/podgroups/odd", Spoil(status))
    told = passes()
    assert (told["bound"], told["told"]["groups"]) == (2, 1)
    assert told["told"]["troubles"] == [f"PodGroup default/odd: {status} spoilt"]
    assert [cluster.get(f"{GROUPS}/{name}").get("status", {}).get("phase") for name in ("odd", "fine")] == [
        None,
        "Running",
    ]


@pytest.mark.parametrize("flags", [(), ("--inqueue",)])
def test_a_group_that_there_was_no_time_for_is_written_when_the_server_says(
    flags: tuple[str, ...], cluster: Api, passes: Passes, proxy: Proxy
) -> None:
    cluster.create(node("n1"), *gang("late", 1), *gang("fine", 1))
    proxy.rule = refusing("PATCH", "/podgroups/late", Spoil(429, headers=(("Retry-After", "1"),)), times=2)
    told = passes(*flags)
    assert (told["told"]["groups"], told["told"]["troubles"]) == (2, [])
    assert proxy.asked["PATCH", f"{GROUPS}/late"] == (4 if flags else 3)


@pytest.mark.parametrize(
    "spoil", [Spoil(503), *exhaustive(Spoil(429, headers=(("Retry-After", "1"),)), Spoil(0), Spoil(401))]
)
def test_a_server_that_takes_no_binding_is_left_alone(spoil: Spoil, cluster: Api, passes: Passes, proxy: Proxy) -> None:
    """Each of 40 pods would cost the grace of a gang; after the first few nothing more is tried."""
    cluster.create(node("n1", cpu=100), *(live_pod(f"p-{number:02d}", cpu=1) for number in range(40)))
    proxy.rule = refusing("POST", "/binding", spoil)
    told = passes("--gang-grace", "1.5", "--bind-workers", "4", code=6)
    assert told["bound"] == 0
    assert "the server has refused everything for" in told["error"]
    assert told["gangs"]["left"] == 40
    assert sum("refused everything" in why for why in told["left"].values()) >= 20
    proxy.rule = lambda *_: None
    assert passes()["bound"] == 40
