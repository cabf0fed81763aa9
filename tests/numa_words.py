"""NUMA nodes and pods in a few words: cpu in cores, gpu and everything else in pieces.

``numa("single", "pod", "4 cpu 8 memory", "1 of 4 cpu 8 memory")`` has zones node-0 and node-1, and of the cores of
node-1 only one is available; ``3=`` before a zone gives it the id 3. ``init:`` and ``sidecar:`` before a container make
it one.
"""

from __future__ import annotations

from collections.abc import Iterable

from placer.base.quantity import Resources
from placer.problem.numa import NumaContainer, NumaDemand, NumaNode, NumaZone, Qos, Stage, TopologyManager
from tests.world import GPU

SHORT = {"gpu": GPU, "huge": "hugepages-2Mi"}
STAGES = {"init:": Stage.INIT, "sidecar:": Stage.SIDECAR}


def numa(policy: str, scope: str, *zones: str) -> NumaNode:
    """A node; ``single`` is short for single-numa-node."""
    made = tuple(_zone(number, text) for number, text in enumerate(zones))
    return NumaNode({"single": "single-numa-node"}.get(policy, policy), scope, made)


def demand(*containers: str, qos: str = "Guaranteed", overhead: str = "", pod_level: bool = False) -> NumaDemand:
    """A pod; its containers are called c0, c1, ... as given, init containers and sidecars come first by themselves."""
    made = [_container(number, text) for number, text in enumerate(containers)]
    made.sort(key=lambda each: each.stage is Stage.APP)
    return NumaDemand(Qos(qos), tuple(made), _amounts(overhead), pod_level)


def replay(node: NumaNode, *pods: NumaDemand) -> str:
    """Zone numbers per pod, ``-`` for one that is refused, ``any`` for one that nothing is aligned of."""
    manager = TopologyManager(node)
    answers = map(manager.admit, pods)
    return " ".join("-" if answer.refusal else zones_said(answer.zones) for answer in answers)


def zones_said(zones: Iterable[str]) -> str:
    """Names of zones as one word."""
    return "".join(name.removeprefix("node-") for name in sorted(zones)) or "any"


def left(node: NumaNode, *pods: NumaDemand) -> list[str]:
    """What each zone has left after the pods, in the words that they are made of."""
    manager = TopologyManager(node)
    for pod in pods:
        manager.admit(pod)
    long = {name: short for short, name in SHORT.items()}
    return [
        " ".join(
            f"{amount / 1000:g} cpu" if name == "cpu" else f"{amount} {long.get(name, name)}"
            for name, amount in zone.available.items()
        )
        for zone in manager.after().zones
    ]


def _zone(number: int, text: str) -> NumaZone:
    if text[1:2] == "=":
        number, text = int(text[0]), text[2:]
    capacity: dict[str, int] = {}
    available: dict[str, int] = {}
    words = text.split()
    while words:
        first = words.pop(0)
        most = first
        if words[0] == "of":
            most = words[1]
            del words[:2]
        name = SHORT.get(words[0], words.pop(0))
        available[name], capacity[name] = _amount(name, first), _amount(name, most)
    total, rest = Resources(capacity), Resources(available)
    return NumaZone(number, f"node-{number}", total, rest, total, frozenset(capacity))


def _container(number: int, text: str) -> NumaContainer:
    words = text.split()
    stage = STAGES.get(words[0] if words else "", Stage.APP)
    return NumaContainer(f"c{number}", stage, _amounts(" ".join(words[stage is not Stage.APP :])))


def _amounts(text: str) -> Resources:
    words = text.split()
    names = [SHORT.get(word, word) for word in words[1::2]]
    return Resources({name: _amount(name, amount) for name, amount in zip(names, words[::2], strict=True)})


def _amount(name: str, text: str) -> int:
    return round(float(text) * 1000) if name == "cpu" else int(text)
