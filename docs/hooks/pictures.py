"""The pictures of the site, drawn from what placer says when the site is made: none can be out of date."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

from drawing import GAP, HEAD, ROW, Look, box, cluster, colours_of, figure, line, text, waiting

import placer
from placer.base.words import value_word
from placer.lab.figures.content import FIGURES, make_figure
from placer.lab.figures.drawing import draw
from placer.lab.figures.measured import read_runs
from placer.lab.policies.mimicry import run as mimicked
from placer.problem import Instance, Key
from placer.problem.numa import TopologyManager
from placer.problem.placement import Placement

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "docs" / "examples"
#: Makes the queue of the first picture.
FULL = "placer generate planted --nodes 16 --leaf-size 4 --leaves-per-spine 2 --pod-sizes 1,2,4,8 --seed 4"


#: The figures of the benchmarks: what is seen in each, for who cannot see it.
FIGURE_PARTS: Mapping[str, Callable[[], str]] = {
    f"figure-{name}": partial(str, f"![{words}](figures/{name}.svg)")
    for name, words in {
        "profile": "Share of instances over placed weight of the best, as a part of that of the policy",
        "placed": "Placed weight over the optimum or its bound, by family and policy",
        "size": "Seconds and memory by number of nodes, for each policy",
        "gap": "What is not placed yet over the seconds of a call, for each run with a trace",
    }.items()
}


def figures(lines: Path) -> Iterator[tuple[str, str]]:
    """What ``placer plot`` draws of the lines of the benchmarks: name and SVG of each figure."""
    runs = read_runs([str(lines)])
    with tempfile.TemporaryDirectory() as folder:
        for name in FIGURES:
            target = Path(folder) / f"{name}.svg"
            draw(make_figure(name, runs), target)
            yield name, target.read_text(encoding="utf-8")


def _solved(instance: Instance) -> Placement:
    """The best placement, proved to be one; an example that is not is none."""
    result = placer.solve(instance, time_limit=30, workers=1)
    if result.placement is None or result.verdict.name != "OPTIMAL":
        raise ValueError(f"an example is not solved: {result.verdict}")
    return result.placement


def _pod_by_pod_and_placer(example: str, title: str, caption: str) -> str:
    """Both placements of an example, each below its name, and who waits under it."""
    instance = placer.read(EXAMPLES / example)
    rows = {"Pod by pod (kube-default)": mimicked(instance, "kube-default"), "placer": _solved(instance)}
    colours, parts, top, width = colours_of(instance), [], 0.0, 0.0
    for name, placement in rows.items():
        parts.append(text(0, top + 14, name, "head"))
        drawn, end, foot = cluster(instance, placement, colours, top=top + HEAD + GAP)
        parts += drawn
        left = [pod.name.replace("-w-", "-") for pod in waiting(instance, placement)]
        parts.append(text(0, foot + 12, f"waiting: {', '.join(left) if left else 'none'}", "small"))
        top, width = foot + 36, max(width, end)
    return figure(parts, (width, top - 14), title, caption)


def example() -> str:
    """The worked example of the model."""
    instance = placer.read(ROOT / "models" / "example.yaml")
    placement = _solved(instance)
    drawn, width, foot = cluster(instance, placement, colours_of(instance), Look(slot=36))
    left = ", ".join(pod.name for pod in waiting(instance, placement))
    return figure(
        [*drawn, text(0, foot + 12, f"waiting: {left}", "small")],
        (width, foot + 18),
        "Two leaf switches below a spine, five nodes of 4 GPUs, and the pods on them",
        "Nodes below their HyperNodes, four GPUs each. <em>web</em> ran before; all others are new: <em>t1</em> to "
        "<em>t4</em> are the gang <em>train</em>, <em>e1</em> to <em>e3</em> the gang <em>eval</em>. <em>n5</em> is "
        "in no HyperNode, and tainted.",
    )


def gangs() -> str:
    """Pod by pod, and as gangs."""
    return _pod_by_pod_and_placer(
        "gangs.yaml",
        "Three jobs on six GPUs, placed pod by pod and as gangs",
        "<em>a</em> and <em>b</em> need four pods each, <em>c</em> two. Pod by pod, <em>b</em> gets two of its four "
        "pods, which hold two GPUs and cannot begin, while <em>c</em> waits, which would fit there.",
    )


def tiers() -> str:
    """Anywhere, and near each other."""
    return _pod_by_pod_and_placer(
        "tiers.yaml",
        "Two gangs under two leaf switches, placed without and with a view of the tiers",
        "<em>near</em> may not go beyond tier 1. Pod by pod it is spread over both leaves, so that its pods talk "
        "through the spine.",
    )


def planted() -> str:
    """A whole cluster, full."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "queue.json"
        subprocess.run([sys.executable, "-m", "placer", *FULL.split()[1:], "-o", file], check=True, stdout=-3)
        instance = placer.read(file)
    placement = _solved(instance)
    drawn, width, foot = cluster(instance, placement, colours_of(instance), Look(slot=6, names=False, gap=1, rows=3))
    return figure(
        drawn,
        (width, foot - 8),
        "Sixteen nodes of 8 GPUs below their switches, full, each gang in a colour of its own",
        "Sixteen nodes of 8 GPUs below their switches, and the 14 gangs that fill them, each with as few switches "
        "between its pods as can be. It is proved that no placement is better. The queue is that of "
        f"<code>{FULL}</code>.",
    )


def zones() -> str:
    """Two orders in which a kubelet gets two pods."""
    instance = placer.read(ROOT / "instances" / "numa" / "one-order.yaml")
    parts, unit, top = [], 58, 0.0
    for order in (("small", "large"), ("large", "small")):
        parts.append(text(0, top + 14, f"{order[0]} first, then {order[1]}", "head"))
        drawn = _zones(instance, order, unit, top + HEAD + GAP)
        parts += drawn
        top += HEAD + 2 * ROW + 34
    return figure(
        parts,
        (7 * unit + 170, top - 12),
        "A node of two NUMA zones with 4 and 2 cores, and two pods in both orders",
        "<em>large</em> asks for 4 cores of one zone, <em>small</em> for 2. The kubelet takes the lowest zone that "
        "has room, pod after pod: with <em>small</em> first, no zone has 4 cores left, though the node has.",
    )


def _zones(instance: Instance, order: tuple[str, str], unit: int, top: float) -> Iterator[str]:
    """What the kubelet makes of pods that come in an order."""
    node = instance.nodes["n1"]
    manager = TopologyManager(node.numa) if node.numa is not None else None
    if manager is None:
        raise ValueError("the example has no NUMA zones")
    place: dict[str, float] = {}
    x = 0.0
    for zone, left in zip(manager.node.zones, manager.left, strict=True):
        cores = left["cpu"] // 1000
        yield box(x, top, cores * unit + GAP, ROW + HEAD + GAP, "node")
        yield text(x + GAP, top + 14, f"{zone.name}, {cores} cores", "small")
        yield from (box(x + GAP + core * unit, top + HEAD, unit - GAP, ROW - GAP, "free") for core in range(cores))
        place[zone.name] = x + GAP
        x += cores * unit + 3 * GAP
    for name in order:
        pod = instance.pods[Key("default", name)]
        admission = manager.admit(pod.numa)
        wide = pod.requests["cpu"] // 1000 * unit - GAP
        if admission.refusal:
            yield text(x + GAP, top + HEAD + 15, f"{name}: refused", "bad")
            continue
        at = place[admission.zones[0]]
        place[admission.zones[0]] += wide + GAP
        yield box(at, top + HEAD, wide, ROW - GAP, f"gang-{('large', 'small').index(name)}")
        yield text(at + wide / 2, top + HEAD + 15, name, "pod", "middle")


def order() -> str:
    """The values of two placements in the order in which they are compared."""
    instance = placer.read(ROOT / "models" / "example.yaml")
    best = _solved(instance)
    other = Placement.of({pod: node for pod, node in best.node_of.items() if pod.name != "e3"})
    if placer.verify(instance, other):
        raise ValueError("the other placement breaks a rule")
    rows = list(zip(placer.score(instance, best), placer.score(instance, other), strict=True))
    parts = [text(330, 14, "this one", "head", "end"), text(450, 14, "another one", "head", "end")]
    decided = False
    for index, (mine, theirs) in enumerate(rows):
        y = 26 + index * (ROW + GAP)
        decides = not decided and mine.value != theirs.value
        kind = "decides" if decides else "decided" if decided else "domain"
        parts.append(box(0, y, 460, ROW, kind))
        parts.append(text(8, y + 17, f"{index + 1}. {value_word(mine.name)}", "small"))
        parts += [text(x, y + 17, f"{each.value:,}", "small", "end") for x, each in ((330, mine), (450, theirs))]
        parts += [text(470, y + 17, "decides", "head")] if decides else []
        decided = decided or decides
    return figure(
        parts,
        (540, 26 + len(rows) * (ROW + GAP)),
        "The values of two placements of the worked example, one below the other; the first that differs decides",
        "The placement of the worked example, and the same without <em>e3</em>, which may wait because it is optional. "
        "Amounts are in micro-nodes. The other one has less locality, but what stands below the row that "
        "decides is not looked at any more.",
    )


def bounds() -> str:
    """Values of two answers beside a proved bound."""
    folder = ROOT / "instances" / "planted"
    instance = placer.read(folder / "planted-200-mixed.json.gz")
    greedy = placer.solve(instance, method="greedy", workers=1)
    judged = {each.value.name: each for each in greedy.objective}
    best = placer.read_placement(folder / "planted-200-mixed.best.json.gz")
    found = next(value.value for value in placer.score(instance, best) if value.name == "locality")
    value, bound = judged["locality"].value.value, judged["locality"].bound
    if bound is None or not bound.value <= found <= value:
        raise ValueError("the example of bounds has none")
    return _bars({"greedy": value, "best known": found}, bound.value)


def _bars(values: Mapping[str, int], bound: int) -> str:
    unit = 420 / max(values.values())
    at = 100 + bound * unit
    parts = [text(at, 14, f"bound {bound:,}: no placement has less", "head", "end")]
    for index, (name, value) in enumerate(values.items()):
        y = 26 + index * (ROW + GAP)
        gap = (value - bound) / value
        parts.append(text(92, y + 17, name, "small", "end"))
        parts.append(box(100, y, value * unit, ROW, f"gang-{index}"))
        parts.append(text(108, y + 17, f"{value:,}", "pod"))
        parts.append(text(108 + value * unit, y + 17, f"gap {gap:.1%}", "small"))
    foot = 30 + len(values) * (ROW + GAP)
    parts.append(line(at, 20, at, foot, "bound"))
    return figure(
        parts,
        (620, foot + 4),
        "Network distance of two placements of planted-200-mixed, and the bound",
        "Network distance of two placements of <code>instances/planted/planted-200-mixed.json.gz</code>. The gap is "
        "what could still be won at most, over the value.",
    )


#: Pictures by the name that stands in a page.
PICTURES: Mapping[str, Callable[[], str]] = {
    "picture-example": example,
    "picture-gangs": gangs,
    "picture-tiers": tiers,
    "picture-planted": planted,
    "picture-zones": zones,
    "picture-order": order,
    "picture-bounds": bounds,
}
