"""Leader election at a server and a clock that are played here: who leads when, and what is written."""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from placer.base.errors import ClusterError
from placer.passes.cluster.reading.client import Response, Unanswered
from placer.passes.cluster.writing.lease import HANDOVER, PAUSED, LeaderElector, LeaseOptions, _Trouble, boot_seconds
from placer.passes.cluster.writing.plan_execution import _LAST

OPTIONS = LeaseOptions()


class Clock:
    """Time that passes while somebody waits; it also stands for the event that is waited for."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.meanwhile: Callable[[], None] = lambda: None  #: what others do in each wait

    def __call__(self) -> float:
        return self.now

    def is_set(self) -> bool:
        return False

    def wait(self, seconds: float) -> bool:
        self.now += seconds
        self.meanwhile()
        return False


class Leases:
    """One Lease, kept as an API server keeps it: what is not written over the newest version is a conflict."""

    def __init__(self) -> None:
        self.record: dict[str, Any] | None = None
        self.version = 0
        self.spoilt: Callable[[str], Response | None] = lambda _method: None
        self.asked: list[str] = []

    def get(self, *_: Any) -> Response:
        raise AssertionError("a renewal must not be tried again for a minute")

    def send(self, method: str, path: str, body: Any = None, **_: Any) -> Response:
        assert path.startswith("/apis/coordination.k8s.io/v1/namespaces/placer/leases")
        self.asked.append(method)
        spoilt = self.spoilt(method)
        if spoilt is not None:
            return spoilt
        if method == "POST":
            return Response(409, b"{}") if self.record is not None else self.write(body, 201)
        if self.record is None:
            return Response(404, b'{"message": "not found"}')
        if method == "PUT":
            if body["metadata"]["resourceVersion"] != str(self.version):
                return Response(409, b"{}")
            return self.write(body, 200)
        return Response(200, json.dumps(self.record).encode())

    def write(self, body: Any, status: int) -> Response:
        self.version += 1
        self.record = {**body, "metadata": {**body["metadata"], "resourceVersion": str(self.version)}}
        return Response(status, json.dumps(self.record).encode())

    @property
    def spec(self) -> dict[str, Any]:
        assert self.record is not None
        found: dict[str, Any] = self.record["spec"]
        return found


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def leases() -> Leases:
    return Leases()


def elector(leases: Leases, clock: Clock, name: str = "me") -> LeaderElector:
    return LeaderElector(leases, name, OPTIONS, clock)


def acquired(leases: Leases, clock: Clock, name: str = "me") -> LeaderElector:
    found = elector(leases, clock, name)
    assert acquire(found, clock)
    return found


def acquire(found: LeaderElector, clock: Clock) -> bool:
    return found.acquire(clock)  # type: ignore[arg-type]


def test_the_first_makes_the_lease(leases: Leases, clock: Clock) -> None:
    mine = acquired(leases, clock)
    assert (mine.lost, mine.holder) == (None, "me")
    spec = leases.spec
    assert {key: spec[key] for key in ("holderIdentity", "leaseDurationSeconds", "leaseTransitions")} == {
        "holderIdentity": "me",
        "leaseDurationSeconds": 15,
        "leaseTransitions": 0,
    }
    assert spec["acquireTime"] == spec["renewTime"]
    assert spec["renewTime"].endswith("Z")


def test_an_operator_pauses_by_an_annotation_that_the_next_renewal_sees(leases: Leases, clock: Clock) -> None:
    mine = acquired(leases, clock)
    assert mine.paused is None
    assert leases.record is not None
    for notes, said in (({PAUSED: "the fabric"}, "the fabric"), ({PAUSED: ""}, "no reason given")):
        leases.write({**leases.record, "metadata": {**leases.record["metadata"], "annotations": notes}}, 200)
        mine._renew()
        assert mine.paused == f"{OPTIONS} is annotated {PAUSED}: {said}"
        assert leases.record["metadata"]["annotations"] == notes  # a renewal takes it along
    leases.write({**leases.record, "metadata": {**leases.record["metadata"], "annotations": {}}}, 200)
    mine._renew()
    assert (mine.paused, mine.lost) == (None, None)


def test_a_holder_that_is_seen_to_live_keeps_it(leases: Leases, clock: Clock) -> None:
    other, mine = acquired(leases, clock, "other"), elector(leases, clock)
    clock.meanwhile = other._renew
    began = clock.now
    assert not acquire(mine, clock)
    assert clock.now - began <= 2 * OPTIONS.retry_period
    assert (mine.holder, leases.spec["holderIdentity"]) == ("other", "other")
    assert mine.lost is not None


def test_a_record_that_stands_still_is_taken_over_whatever_its_clock_says(leases: Leases, clock: Clock) -> None:
    acquired(leases, clock, "other")
    leases.spec["renewTime"] = "2099-01-01T00:00:00.000000Z"
    mine, began = elector(leases, clock), clock.now
    assert acquire(mine, clock)
    assert clock.now - began == OPTIONS.duration
    assert (leases.spec["holderIdentity"], leases.spec["leaseTransitions"]) == ("me", 1)


def test_it_is_the_holders_duration_that_counts(leases: Leases, clock: Clock) -> None:
    acquired(leases, clock, "other")
    leases.spec["leaseDurationSeconds"] = 40
    began = clock.now
    assert acquire(elector(leases, clock), clock)
    assert clock.now - began == 40


def test_who_had_our_token_for_a_moment_keeps_nobody_out_for_years(leases: Leases, clock: Clock) -> None:
    """Both numbers are the largest that a server takes; one more, and it refuses each renewal."""
    acquired(leases, clock, "thief")
    leases.spec.update(leaseDurationSeconds=2**31 - 1, leaseTransitions=2**31 - 1)
    began = clock.now
    assert acquire(elector(leases, clock), clock)
    assert clock.now - began == 60
    assert (leases.spec["leaseDurationSeconds"], leases.spec["leaseTransitions"]) == (15, 1)


def test_what_is_released_is_free_at_once(leases: Leases, clock: Clock) -> None:
    other = acquired(leases, clock, "other")
    assert other.release()
    assert other.lost is not None
    assert "holderIdentity" not in leases.spec
    began = clock.now
    acquired(leases, clock)
    assert clock.now == began
    assert leases.spec["leaseTransitions"] == 1


def test_who_cannot_renew_stops_before_another_may_begin(leases: Leases, clock: Clock) -> None:
    mine = acquired(leases, clock)
    clock.now += OPTIONS.renew_deadline - 0.001
    assert mine.lost is None
    clock.now += 0.001
    assert mine.lost is not None
    assert OPTIONS.renew_deadline + HANDOVER <= OPTIONS.duration
    assert 0 < _LAST < HANDOVER  # what a gang under way has left


def test_a_renewal_counts_from_when_it_was_sent(leases: Leases, clock: Clock) -> None:
    mine = acquired(leases, clock)

    def slow(_method: str) -> None:
        clock.now += 4.0

    clock.now += 5.0
    leases.spoilt = slow
    mine._renew()
    leases.spoilt = lambda _method: None
    clock.now += 6.0
    assert mine.lost is not None


def test_a_renewal_whose_answer_got_lost_is_no_loss(leases: Leases, clock: Clock) -> None:
    mine = acquired(leases, clock)
    leases.write(leases.record, 200)  # it was made, and we do not know its version
    mine._renew()
    assert mine.lost is None
    assert leases.spec["leaseTransitions"] == 0


@pytest.mark.parametrize("way", ["taken", "deleted"])
def test_one_that_is_taken_away_is_lost_and_not_taken_back(leases: Leases, clock: Clock, way: str) -> None:
    mine = LeaderElector(leases, "me", LeaseOptions(retry_period=0.01), clock)
    assert acquire(mine, clock)
    if way == "taken":
        leases.write({**(leases.record or {}), "spec": {**leases.spec, "holderIdentity": "thief"}}, 200)
    else:
        leases.record = None
    with mine.leading():
        for thread in threading.enumerate():
            if thread.name == str(OPTIONS):
                thread.join()
        why = "thief has taken it" if way == "taken" else "it was deleted"
        assert mine.lost == f"{OPTIONS} is not held: {why}"
    assert (leases.record is None) is (way == "deleted")
    assert way == "deleted" or leases.spec["holderIdentity"] == "thief"


def test_it_is_renewed_while_the_block_lasts_and_released_at_its_end(leases: Leases, clock: Clock) -> None:
    mine = LeaderElector(leases, "me", LeaseOptions(retry_period=0.01), clock)
    assert acquire(mine, clock)
    with mine.leading():
        end = threading.Event()
        while leases.asked.count("PUT") < 3:
            end.wait(0.01)
        assert mine.lost is None
    assert "holderIdentity" not in leases.spec


def test_a_right_that_is_missing_is_told_at_once(leases: Leases, clock: Clock) -> None:
    leases.spoilt = lambda _method: Response(403, b'{"message": "forbidden"}')
    began = clock.now
    with pytest.raises(ClusterError, match=f"{OPTIONS}: 403 forbidden .*deploy/base"):
        acquire(elector(leases, clock), clock)
    assert clock.now == began


def test_a_server_in_trouble_is_asked_again_and_given_up(leases: Leases, clock: Clock) -> None:
    leases.spoilt = lambda _method: Response(503, b"{}")
    with pytest.raises(ClusterError, match="503"):
        acquire(elector(leases, clock), clock)

    def silent(_method: str) -> Response:
        raise Unanswered("no answer")

    leases.spoilt = silent
    with pytest.raises(ClusterError, match="no answer"):
        acquire(elector(leases, clock), clock)
    clock.meanwhile = lambda: setattr(leases, "spoilt", lambda _method: None)
    assert acquire(elector(leases, clock), clock)


def test_of_two_at_once_one_gets_it(leases: Leases, clock: Clock) -> None:
    """Both see none, both make it: the second one's is a conflict."""
    one, two = elector(leases, clock, "one"), elector(leases, clock, "two")

    def first(method: str) -> None:
        if method == "POST":
            leases.spoilt = lambda _method: None
            assert acquire(one, clock)

    leases.spoilt = first
    clock.meanwhile = one._renew
    assert not acquire(two, clock)
    assert leases.spec["holderIdentity"] == "one"


@pytest.mark.parametrize(
    "text",
    [b'{"metadata": {"resou', b"[]", b"{}", b'{"metadata": {}, "spec": 7}'],
)
def test_an_answer_that_is_no_lease_is_trouble_that_may_pass(leases: Leases, clock: Clock, text: bytes) -> None:
    """Something between us and the server may write it; whether it was made or renewed shows at the next look."""
    acquired(leases, clock, "before").release()

    def no_lease(method: str) -> Response:
        if method != "GET":
            leases.spoilt = lambda _: None
            body = leases.record or {}
            leases.write({**body, "spec": {**body.get("spec", {}), "holderIdentity": "me"}}, 200)
        return Response(200, text)

    leases.spoilt = no_lease
    with pytest.raises(ClusterError, match="found no Lease"):
        acquire(elector(leases, clock), clock)
    clock.meanwhile = lambda: setattr(leases, "spoilt", lambda _method: None)
    mine = elector(leases, clock)
    assert acquire(mine, clock)
    leases.spoilt = no_lease
    with pytest.raises(_Trouble, match="found no Lease"):
        mine._renew()
    mine._renew()
    assert mine.lost is None
    leases.spoilt = lambda _method: Response(200, text)
    assert mine.release()  # what the answer is is not asked any more


def test_a_conflict_over_a_lease_that_is_not_there_is_asked_again_and_given_up(leases: Leases, clock: Clock) -> None:
    """One that was made and deleted at once; or a server that says so."""

    def conflict(method: str) -> Response | None:
        return Response(409, b"{}") if method == "POST" else None

    leases.spoilt = conflict
    with pytest.raises(ClusterError, match="said to be there, and is not"):
        acquire(elector(leases, clock), clock)
    assert len(leases.asked) < 50
    clock.meanwhile = lambda: setattr(leases, "spoilt", lambda _method: None)
    assert acquire(elector(leases, clock), clock)


def test_it_is_renewed_every_two_seconds_and_looked_at_as_often(leases: Leases, clock: Clock) -> None:
    acquired(leases, clock, "other")
    began, looked = clock.now, list[float]()
    leases.spoilt = lambda _method: looked.append(clock.now - began)
    assert acquire(elector(leases, clock), clock)  # it stands still
    assert looked[:3] == [0.0, 2.0, 4.0]
    assert LeaseOptions().retry_period == 2.0


def test_a_leader_that_stood_still_knows_for_how_long_it_has_been_none(leases: Leases, clock: Clock) -> None:
    mine = elector(leases, clock)
    assert mine.left == -math.inf
    assert acquire(mine, clock)
    assert mine.left == OPTIONS.renew_deadline
    clock.now += 20.0
    assert mine.lost is not None
    assert mine.left == OPTIONS.renew_deadline - 20.0
    mine.release()
    assert mine.left == -math.inf


def test_seconds_for_which_the_machine_sleeps_count() -> None:
    if hasattr(time, "CLOCK_BOOTTIME"):
        assert abs(boot_seconds() - time.clock_gettime(time.CLOCK_BOOTTIME)) < 60.0
    assert boot_seconds() >= time.monotonic() - 60.0
