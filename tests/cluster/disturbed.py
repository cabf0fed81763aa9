"""Full clusters drawn from a seed, of which something is evicted or moved, and what must hold whatever goes wrong."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from tests.cluster.api import Api
from tests.cluster.applied import REFUSED
from tests.cluster.budgets import Budgets
from tests.cluster.controllers import PODS, Controllers, owned, priority_class
from tests.cluster.passes import bound, overfull
from tests.cluster.proxy import AskedEviction, Proxy, Spoil
from tests.support import Document, hyper_node, node, pod_group

__all__ = ["PRIORITIES", "Disturbed", "DrawnCluster"]

PRIORITIES = {"low": 10, "middle": 100, "high": 1000}
_EVENTS = "/apis/events.k8s.io/v1/events"
#: CPUs of a node, nodes of a rack.
_CPUS, _RACK = 8, 2
#: What happens to evictions.
_SPOILS = (
    Spoil(429, text=REFUSED),
    Spoil(429, headers=(("Retry-After", "0"),)),
    Spoil(403, text='{"message": "not today"}'),
    Spoil(500),
    Spoil(503, forwarded=True),
    Spoil(0),
    Spoil(0, forwarded=True),
)


@dataclass
class Disturbed:
    """A call, or a pass, that may have disturbed something.

    Parameters
    ----------
    report
        How far it got; empty where nothing was to be disturbed.
    error
        Why it ended before its time, which it told.
    asked
        Evictions that were asked for in it.
    """

    report: Mapping[str, Any]
    error: str | None
    asked: Sequence[AskedEviction]

    @property
    def trouble(self) -> str | None:
        found: str | None = self.report.get("trouble")
        return found or self.error

    @property
    def evicted(self) -> set[str]:
        return {each.name for each in self.asked if each.done}

    @property
    def told(self) -> set[str]:
        return {each.removeprefix("default/") for each in self.report.get("evicted", ())}


@dataclass
class _Application:
    """Pods of one controller: a gang that needs all of them or some, or single ones."""

    name: str
    priority: str
    cpu: int
    pods: int
    least: int | None
    labels: dict[str, str] = field(default_factory=dict)
    scheduler: str = "placer"

    def documents(self, nodes: Sequence[str | None], **topology: Any) -> list[Document]:
        group = self.name if self.least is not None else None
        labels = {"app": self.name, **self.labels}
        made = [
            owned(f"{self.name}-{number}", self.name, self.priority, where, group=group, cpu=self.cpu, labels=labels)
            for number, where in enumerate(nodes)
        ]
        for each in made:
            each["spec"]["schedulerName"] = self.scheduler
        return [*([pod_group(self.name, minMember=self.least, **topology)] if group else ()), *made]


class DrawnCluster:
    """Two or three full racks, gangs that wait, budgets, and controllers that are late or never come.

    Parameters
    ----------
    api, proxy
        The server, and what is in front of it.
    seed
        Draws everything that is not a matter of time.
    free
        How much of it nothing runs on.
    lost
        Whether a node is lost.
    """

    def __init__(self, api: Api, proxy: Proxy, seed: int, *, free: float = 0.0, lost: bool = False) -> None:
        self._api, self._proxy, self._draw, self._seed = api, proxy, random.Random(seed), seed
        self._happens = random.Random(f"{seed} spoils")
        self._seen = len(proxy.evictions)
        self.budgets = Budgets(api)
        self.calls: list[Disturbed] = []
        racks = self._draw.randint(2, 3)
        self._free = {f"n{number}": _CPUS for number in range(racks * _RACK)}
        self.racks = [[f"n{rack * _RACK + number}" for number in range(_RACK)] for rack in range(racks)]
        self._cluster()
        running = list(self._running(free))
        waiting = list(self._waiting())
        api.create(*(each for each in (*running, *waiting) if each["kind"] != "Pod"))
        made = api.create(*(each for each in (*running, *waiting) if each["kind"] == "Pod"))
        self.pods = {each["metadata"]["uid"]: each for each in made}
        self.budgets.step()
        if lost:
            unknown = [{"type": "Ready", "status": "Unknown"}]
            api.patch("/api/v1/nodes/n0/status", {"status": {"conditions": unknown}})
        pods = [each for each in running if each["kind"] == "Pod"]
        renamed = bool(self._draw.randrange(4))
        self.controllers = Controllers(
            api, pods, renamed=renamed, lost={"n0"} if lost else (), late=self._late, besides=self.budgets.step
        )

    def _cluster(self) -> None:
        names = [f"r{number}" for number in range(len(self.racks))]
        racks = zip(names, self.racks, strict=True)
        self._api.create(
            *(priority_class(name, value) for name, value in PRIORITIES.items()),
            *(node(name, cpu=_CPUS) for name in self._free),
            *(hyper_node(name, 1, nodes=tuple(nodes)) for name, nodes in racks),
            hyper_node("all", 2, children=tuple(names)),
        )

    def _running(self, free: float) -> Iterator[Document]:
        """Applications, until no more of the cluster is free."""
        draw, most = self._draw, free * _CPUS * len(self._free)
        for number in range(30):
            if sum(self._free.values()) <= most:
                return
            pods, cpu = draw.randint(1, 3), draw.choice((2, 4, 4, 8))
            app = _Application(
                f"run{number}",
                draw.choice(("low",) * 6 + ("middle", "high")),
                cpu,
                pods,
                draw.choice((None, 1, pods, pods)),
                {"placer.dev/disrupt": "never"} if draw.random() < 0.05 else {},
                "placer" if draw.random() < 0.95 else "default-scheduler",
            )
            nodes = self._room(app)
            if nodes is None:
                continue
            yield from app.documents(nodes)
            if draw.random() < 0.3:
                self.budgets.add(app.name, pods, **draw.choice(({"maxUnavailable": 1}, {"minAvailable": pods - 1})))

    def _room(self, app: _Application) -> list[str] | None:
        """A node for each pod of an application."""
        free, found = dict(self._free), list[str]()
        for _ in range(app.pods):
            there = [name for name, amount in free.items() if amount >= app.cpu]
            if not there:
                return None
            found.append(self._draw.choice(there))
            free[found[-1]] -= app.cpu
        self._free = free
        return found

    def _waiting(self) -> Iterator[Document]:
        draw, in_rack = self._draw, {"mode": "hard", "highestTierAllowed": 1}
        for number in range(draw.randint(1, 3)):
            pods = draw.randint(1, 2)
            app = _Application(
                f"wait{number}", draw.choice(("middle", "high", "high")), draw.choice((4, 8)), pods, pods
            )
            yield from app.documents([None] * pods, **({"networkTopology": in_rack} if draw.random() < 0.7 else {}))

    def _late(self, name: str) -> tuple[int, int | None]:
        draw = random.Random(f"{self._seed} {name}")
        return draw.choice((0, 0, 0, 10, 40)), draw.choice((0, 0, 0, 10, 40, None))

    # ----------------------------------------------------------------------------------------------------- what happens

    def spoil(self, *, spoilt: bool) -> None:
        """Have evictions go wrong from now on, or not."""
        happens = self._happens

        def rule(_method: str, path: str, times: int) -> Spoil | None:
            """Mostly it is no dry run any more where it was asked before."""
            goes_wrong = path.endswith("/eviction") and happens.random() < (0.1 if times == 1 else 0.4)
            return happens.choice(_SPOILS) if goes_wrong else None

        self._proxy.rule = rule if spoilt else lambda *_: None

    def note(self, report: Mapping[str, Any] | None, error: str | None) -> Disturbed:
        """Take down what a call told, with the evictions that were asked for since the one before."""
        asked = self._proxy.evictions[self._seen :]
        self._seen += len(asked)
        self.pods |= {each["metadata"]["uid"]: each for each in self._api.items(PODS)}
        self.calls.append(Disturbed(report or {}, error, asked))
        return self.calls[-1]

    # --------------------------------------------------------------------------------------------------- what must hold

    @property
    def evicted(self) -> Counter[str]:
        """Uid to how often a pod was evicted."""
        return Counter(each.uid for call in self.calls for each in call.asked if each.done)

    def gainers(self, names: set[str]) -> set[str]:
        """Groups for which pods were evicted, by the Events of these."""
        notes = (each for each in self._api.items(_EVENTS) if each["regarding"]["name"] in names)
        found = (
            re.findall(r"default/(\S+?)(?:,| and| is| are)", each["note"])
            for each in notes
            if each["reason"] == "Preempted"
        )
        return set(chain.from_iterable(found))

    def is_admitted(self, group: str) -> bool:
        """Whether as many pods of a group have nodes as it needs."""
        path = f"/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups/{group}"
        least: int = self._api.get(path)["spec"]["minMember"]
        members = {name for name in bound(self._api) if name.rsplit("-", 1)[0] == group}
        return len(members) >= least

    def free(self, name: str) -> int:
        """CPUs that no pod requests of a node."""
        there = (each["spec"] for each in self._api.items(PODS) if each["spec"].get("nodeName") == name)
        return _CPUS - sum(int(each["containers"][0]["resources"]["requests"]["cpu"]) for each in there)

    def faults_of(self, call: Disturbed) -> Iterator[str]:
        """What a call did that it may not, or did not tell."""
        trouble = call.trouble or ""
        yield from (
            f"{name} was evicted and not told" for name in call.evicted - call.told if f"/{name} " not in trouble
        )
        yield from (f"{name} was told and not evicted" for name in call.told - call.evicted)
        if "was refused" in trouble or "got no answer" in trouble:
            last = call.asked[-1].name
            if f"/{last} " not in trouble:
                yield f"{last} was evicted after a refusal: {trouble}"
        if call.told and not trouble:
            gaining = self.gainers(call.told)
            yield from (f"all went for {each}, which waits" for each in gaining if not self.is_admitted(each))
        told = {each["regarding"].get("uid") for each in self._api.items(_EVENTS)}
        uids = {each.uid for each in call.asked if each.done and each.name in call.told}
        yield from (f"no Event tells of {self.pods[uid]['metadata']['name']}" for uid in uids - told)

    def faults(self) -> Iterator[str]:
        """What does not hold in the end, whoever was called."""
        for uid, times in self.evicted.items():
            pod = self.pods[uid]
            name = pod["metadata"]["name"]
            if times > 1:
                yield f"{name} was evicted {times} times"
            if pod["spec"]["schedulerName"] != "placer" or "placer.dev/disrupt" in pod["metadata"]["labels"]:
                yield f"{name} was evicted, and may not be"
        for number, call in enumerate(self.calls):
            waiting = {each for each in self.gainers(call.evicted) if not self.is_admitted(each)}
            later = self.calls[number + 1 :]
            if "still there" in (call.trouble or "") and not any("no longer" in (each.trouble or "") for each in later):
                yield from (f"room was made for {each}, which waits" for each in waiting)
            again = set(chain.from_iterable(self.gainers(each.evicted) for each in later))
            yield from (f"pods went for {each} twice, and it waits" for each in waiting & again)
        yield from self.budgets.broken
        yield from (f"{name} is over-full" for name in overfull(self._api))
