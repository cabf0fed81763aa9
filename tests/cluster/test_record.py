"""The record cannot be filled, and nothing of it that is not needed to bind is worth a pass."""

from __future__ import annotations

import json
import random
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from placer.base.errors import ClusterError
from placer.passes.cluster.reading.client import Response
from placer.passes.cluster.reading.gang_record import (
    MOST_BYTES,
    GangRecord,
    HeldRoom,
    RecordedDisruption,
    RecordedGangs,
    RejectedWorkload,
    Reservation,
    ReservedPod,
    UnansweredPods,
    digests,
    packed,
    read_record,
    record_bytes,
    record_troubles,
)
from placer.passes.cluster.reading.rejections import failed_pods
from placer.passes.cluster.reading.views import WorkloadKey
from placer.passes.cluster.writing import gang_ledger
from placer.passes.cluster.writing.gang_ledger import write_record
from placer.passes.metrics import LoopMetrics
from placer.passes.scheduling_pass import Pass, PassOptions
from placer.problem import GroupKey, Key
from tests.cluster.snapshots import ListServer
from tests.cluster.test_any_object import ALL_GOOD, Double, good, good_ones, pass_at
from tests.cluster.test_rejections import failed
from tests.support import Document

NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
MOST = 2**20
WHERE = ("placer", "placer-gangs")
GANGS = {GroupKey("scheduling.volcano.sh", "default", "train"): GangRecord(NOW, digests(["1", "2"]))}
HONEST = WorkloadKey("default", "Job", "train")
SMALL = RejectedWorkload({"n1": NOW}, "OutOfcpu")


class ConfigMaps(Double):
    """A server that has the record, as a real one would: not one of more than a ConfigMap holds."""

    def __init__(self, documents: list[Document], data: Mapping[str, str] | None = None) -> None:
        super().__init__(documents, [])
        self.data = None if data is None else dict(data)
        self.answers: list[Response] = []
        self.writes = 0

    def get(self, path: str, parameters: Mapping[str, str] | None = None) -> Response:
        if not path.endswith("/configmaps/placer-gangs"):
            return super().get(path, parameters)
        return Response(404, b"{}") if self.data is None else self._answer(200)

    def send(self, method: str, path: str, body: Any = None, **options: Any) -> Response:
        if "/configmaps" not in path:
            return super().send(method, path, body, **options)
        self.writes += 1
        if self.answers:
            return self.answers.pop(0)
        if sum(len(b64decode(text)) for text in body["binaryData"].values()) > MOST:
            return Response(422, b'{"message": "Too long: may not be more than 1048576 bytes"}')
        self.data = body["binaryData"]
        return self._answer(200)

    def _answer(self, status: int) -> Response:
        metadata = {"resourceVersion": str(self.writes)}
        return Response(status, json.dumps({"metadata": metadata, "binaryData": self.data}).encode())

    def record(self) -> RecordedGangs:
        return read_record(self, "placer", "placer-gangs")


def noise(characters: int, seed: int = 0) -> str:
    """A text that cannot be packed, of 6 bits a character."""
    return b64encode(random.Random(seed).randbytes(characters)).decode()[:characters]


def written(**parts: Any) -> tuple[ConfigMaps, RecordedGangs]:
    """The record of a gang and of other parts, and the server that has it."""
    server = ConfigMaps([])
    found = write_record(server, *WHERE, RecordedGangs(), RecordedGangs(GANGS, **parts))
    assert replace(server.record(), version="") == replace(found, version="")
    assert found.gangs == GANGS
    return server, found


# ----------------------------------------------------------------------------------------------------- what it can hold


def test_a_kubelets_text_is_short_where_it_is_read() -> None:
    """It is recorded before the first binding of a pass, in each line, and a label of metrics."""
    (found,) = failed_pods(ListServer({"/api/v1/pods": [failed("a", "n1", "OutOf" + "é" * 10**6)]}), "placer", 300)
    assert found.reason == "OutOf" + "é" * 29


def large(seed: int) -> RejectedWorkload:
    return RejectedWorkload({"n1": NOW}, noise(290_000, seed))


def test_workloads_that_take_too_much_are_left_out_and_small_ones_kept() -> None:
    crowd = {WorkloadKey("evil", "Job", str(at)): large(at) for at in range(8)}
    _, found = written(workloads=crowd | {HONEST: SMALL}, unanswered=UnansweredPods("7", digests(["1"])))
    assert found.workloads[HONEST] == SMALL
    assert (len(found.workloads) + found.dropped["rejected"], set(found.dropped)) == (9, {"rejected"})
    assert found.unanswered.pods == digests(["1"])
    assert 0 < found.size < MOST


def reservation(name: str, characters: int) -> Reservation:
    text = json.dumps({"metadata": {"labels": {"a": noise(characters)}}, "spec": {}})
    pods = ((Key("default", name), ReservedPod("uid", "owner", "n1", text)),)
    return Reservation("me", pods, NOW, NOW + timedelta(minutes=5))


def test_room_for_moved_pods_goes_after_that_and_room_that_was_made_at_last() -> None:
    names = tuple((Key("evil", noise(200, at)), ("uid", "n1")) for at in range(10))
    held = HeldRoom("me", names, (), NOW, NOW + timedelta(minutes=5))
    disruption = RecordedDisruption(held, ((NOW, 3),), (reservation("a", 1_500_000), reservation("b", 10)))
    silent = UnansweredPods("7", digests(["1"]))
    _, found = written(workloads={HONEST: SMALL}, disruption=disruption, unanswered=silent)
    assert found.dropped == {"rejected": 1, "unanswered": 1, "reservations": 1}
    assert found.disruption == msgspec.structs.replace(disruption, reservations=(reservation("b", 10),))
    many = ((Key("evil", noise(100, at)), ("uid", noise(100, at + 10**6))) for at in range(10_000))
    crowd = msgspec.structs.replace(held, pods=tuple(many))
    _, found = written(disruption=RecordedDisruption(crowd, ((NOW, 3),)))
    assert (found.dropped, found.disruption) == ({"held": 1}, RecordedDisruption(None, ((NOW, 3),)))


def test_what_has_no_room_is_not_written_again_and_again() -> None:
    crowd = {WorkloadKey("evil", "Job", str(at)): large(at) for at in range(8)}
    server, found = written(workloads=crowd)
    again = write_record(server, *WHERE, found, replace(found, workloads=crowd))
    assert (again, again.dropped, server.writes) == (found, found.dropped, 1)


def test_workloads_that_are_recorded_already_are_not_written_again() -> None:
    server, found = written(workloads={HONEST: SMALL})
    assert write_record(server, *WHERE, found, replace(found, workloads={HONEST: SMALL})) is found
    assert server.writes == 1


def test_a_gangs_name_of_any_characters_is_counted_as_long_as_it_is() -> None:
    """A mark's text is no DNS name: as such names are estimated it would be a third of what it takes."""
    key = GroupKey("", "evil", "".join(map(chr, random.Random(1).choices(range(0x4E00, 0x9000), k=100_000))))
    taken = sum(len(b64decode(text)) for text in packed(RecordedGangs({key: GangRecord(NOW)})).values())
    assert 200_000 < taken < record_bytes(key, 0)
    assert record_bytes(key, 0) < MOST_BYTES


# ------------------------------------------------------------------------------------------------- what cannot be read


def broken(part: str) -> dict[str, str]:
    """A record in which one byte of a part was changed."""
    gone = Reservation("me", (), NOW, NOW)
    silent = UnansweredPods("7", digests(["1"]))
    data = packed(RecordedGangs(GANGS, "", {HONEST: SMALL}, RecordedDisruption(None, (), (gone,)), silent))
    return data | {part: data[part][:30] + ("A" if data[part][30] != "A" else "B") + data[part][31:]}


@pytest.mark.parametrize("part", ["gangs", "rejected", "disruption", "unanswered"])
def test_what_was_edited_by_hand_goes_apart_and_the_rest_counts(part: str) -> None:
    data = broken(part)
    server = ConfigMaps([], data)
    before = server.record()
    (why,) = before.unread
    assert f"configmaps/placer-gangs, key {part}: found " in why
    assert why.endswith("expected a record that placer wrote")
    kept = {"gangs": before.gangs, "rejected": before.workloads, "unanswered": before.unanswered.pods}
    assert [name for name, each in kept.items() if not each] == ([part] if part in kept else [])
    after = write_record(server, *WHERE, before, before)
    assert server.data is not None
    assert server.data[f"unreadable-{part}"] == data[part]
    assert (after.unread, server.record()) == ((), after)
    assert write_record(server, *WHERE, after, after) is after


def test_a_pass_goes_on_and_says_so_until_somebody_deletes_it() -> None:
    server = ConfigMaps(good(), broken("gangs"))
    _, done = pass_at(server)
    assert good_ones(server) == ALL_GOOD
    assert len(done.report.troubles) == 2
    assert server.data is not None
    assert {"unreadable-gangs", "unreadable-pods"} < server.data.keys()
    found = "found unreadable-gangs, unreadable-pods, which could not be read"
    expected = "expected that somebody looks at it"
    told = f"ConfigMap {'/'.join(WHERE)}: {found}, {expected} and deletes it"
    assert record_troubles(server.record(), *WHERE) == [told]
    server.data = {key: text for key, text in server.data.items() if not key.startswith("unreadable-")}
    assert record_troubles(server.record(), *WHERE) == []


def test_what_could_not_be_read_is_the_first_that_has_no_room() -> None:
    data = broken("rejected") | {"unreadable-gangs": "A" * 1_399_996}
    server = ConfigMaps([], data)
    before = server.record()
    after = write_record(server, *WHERE, before, before)
    assert (after.apart, after.dropped, after.gangs) == ({}, {"unreadable": 2}, GANGS)


@pytest.mark.parametrize("text", [b"", b"[]", b'{"binaryData": {}}', b'{"metadata": {}, "binaryData": 5}'])
def test_what_is_no_config_map_is_an_error(text: bytes) -> None:
    class Server(ListServer):
        def get(self, *_: object) -> Response:
            return Response(200, text)

    with pytest.raises(ClusterError, match="expected a ConfigMap"):
        read_record(Server({}), "placer", "placer-gangs")


# ----------------------------------------------------------------------------------------------------- when it is tried


class Clock:
    """Time that passes by sleeping."""

    def __init__(self) -> None:
        self.now, self.slept = 0.0, list[float]()

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(gang_ledger, "time", found)
    return found


@pytest.mark.parametrize("status", [429, 503])
def test_it_is_written_again_when_the_server_wants_to_be_asked_and_not_before(clock: Clock, status: int) -> None:
    server = ConfigMaps([])
    server.answers = [Response(status, b"{}", 1.0), Response(status, b"{}", 3.0), Response(status, b"{}")]
    write_record(server, *WHERE, RecordedGangs(), RecordedGangs(GANGS))
    assert clock.slept == [1.0, 3.0, 1.0]


def test_a_server_that_wants_to_be_asked_much_later_is_not_asked_again(clock: Clock) -> None:
    server = ConfigMaps([])
    server.answers = [Response(429, b'{"message": "later"}', 60.0)]
    with pytest.raises(ClusterError, match="record of half-bound gangs: 429 later"):
        write_record(server, *WHERE, RecordedGangs(), RecordedGangs(GANGS))
    assert (clock.slept, server.writes) == ([], 1)


# -------------------------------------------------------------------------------------------------------------- metrics


def values(metrics: LoopMetrics) -> dict[tuple[str, ...], float]:
    return {
        (each.name, *each.labels.values()): each.value
        for family in metrics.registry.collect()
        for each in family.samples
    }


def test_metrics_tell_what_had_no_room_and_what_could_not_be_read() -> None:
    metrics, done = LoopMetrics("placer"), Pass(PassOptions())
    done.record = RecordedGangs(apart={"unreadable-gangs": "A"}, size=5)
    done.report.unrecorded.update(rejected=3, gangs=2)
    metrics.ended(done)
    found = values(metrics)
    assert (found["placer_record_bytes",], found["placer_record_unreadable",]) == (5, 1)
    assert found["placer_record_dropped_total", "rejected"] == 3
    assert found["placer_record_dropped_total", "gangs"] == 2


def test_reasons_of_kubelets_make_few_series() -> None:
    metrics = LoopMetrics("placer")
    told = {metrics._reason(f"OutOf{at}") for at in range(1_000)}
    assert len(told) == 51
    assert metrics._reason("OutOf0") == "OutOf0"
    assert metrics._reason("OutOf999") == "other"
