"""A cluster and its pods as SVG: domains above their nodes, pods in the slots of the nodes.

Nothing here has a colour: classes have, in ``docs/assets/site.css``, so that a picture is light or dark like its page.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from placer.problem import Instance, Key, Pod, PodState
from placer.problem.placement import Placement

#: Colours that groups take in turn.
COLOURS = 6
ROW, GAP, HEAD = 26, 4, 18


@dataclass(frozen=True)
class Look:
    """How a picture is drawn: how wide a slot is, whether names stand in it, what lies between slots, of which resource
    they are, how many rows of domains there are.
    """

    slot: int = 50
    names: bool = True
    gap: float = GAP
    resource: str = "nvidia.com/gpu"
    rows: int = 2


@dataclass(frozen=True)
class _Span:
    """A domain and where it lies, in slots from the left."""

    name: str
    tier: int
    first: int
    last: int


def figure(parts: Sequence[str], size: tuple[float, float], title: str, caption: str) -> str:
    """A picture with its title for who cannot see it, and its caption; on one line, as Markdown takes it for itself."""
    width, height = size
    svg = (
        f'<svg viewBox="-1 -1 {width + 2:g} {height + 2:g}" style="width:{width + 2:g}px" role="img" '
        f'aria-label="{escape(title)}">'
        f"<title>{escape(title)}</title>{''.join(parts)}</svg>"
    )
    return f'<figure class="drawn"><div tabindex="0">{svg}</div><figcaption>{caption}</figcaption></figure>'


def text(x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> str:
    """Words; ``y`` is their foot."""
    return f'<text x="{x:g}" y="{y:g}" class="{kind}" text-anchor="{anchor}">{escape(words)}</text>'


def box(x: float, y: float, width: float, height: float, kind: str) -> str:
    """A box."""
    return f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="3" class="{kind}"/>'


def line(x: float, y: float, x2: float, y2: float, kind: str) -> str:
    """A line."""
    return f'<line x1="{x:g}" y1="{y:g}" x2="{x2:g}" y2="{y2:g}" class="{kind}"/>'


def cluster(
    instance: Instance, placement: Placement, colours: Mapping[str, int], look: Look | None = None, top: float = 0
) -> tuple[list[str], float, float]:
    """Draw domains, nodes and pods; the parts, and how wide and how far down they reach."""
    look = look or Look()
    nodes, spans, depth = _layout(instance, look)
    parts: list[str] = []
    for level, row in enumerate(spans):
        for span in row:
            x, width = span.first * look.slot, (span.last - span.first) * look.slot - GAP
            parts.append(box(x, top + level * (ROW + GAP), width, ROW, "domain"))
            words = f"{span.name}, tier {span.tier}" if look.names else span.name
            if width > 7 * len(words):
                parts.append(text(x + width / 2, top + level * (ROW + GAP) + 17, words, "small", "middle"))
    bottom = top + depth * (ROW + GAP)
    end = 0.0
    for name, first in nodes.items():
        slots = _slots(instance, name, look)
        x, width = first * look.slot, slots * look.slot - GAP
        end = max(end, x + width)
        foot = ROW + (HEAD if look.names else 2 * GAP)
        parts.append(box(x, bottom, width, foot + GAP, "node"))
        if look.names:
            parts.append(text(x + GAP, bottom + 14, name, "small"))
        at = bottom + foot - ROW
        parts += _free(x + GAP, at, (width - GAP) / slots, slots, look)
        taken = x + GAP
        for pod in _pods(instance, placement, name):
            step = pod.requests.get(look.resource, 0) * (width - GAP) / slots
            parts += _pod(pod, (taken, at, step - look.gap), colours, look)
            taken += step
    return parts, end, bottom + ROW + HEAD + GAP


def _layout(instance: Instance, look: Look) -> tuple[dict[str, int], list[list[_Span]], int]:
    """Where nodes begin, domains from the top down, and how many rows of these there are."""
    tree = instance.topology
    order = sorted(instance.nodes, key=lambda node: (not tree.path(node), tuple(reversed(tree.path(node))), node))
    starts: dict[str, int] = {}
    at = 0
    for node in order:
        starts[node] = at
        at += _slots(instance, node, look)
    paths = {node: tuple(reversed(tree.path(node))) for node in order}
    depth = min(look.rows, max(map(len, paths.values()), default=0))
    rows: list[list[_Span]] = []
    for level in range(depth):
        row: dict[str, _Span] = {}
        for node in order:
            if len(paths[node]) > level:
                name = paths[node][-depth:][level] if len(paths[node]) >= depth else paths[node][level]
                first = row[name].first if name in row else starts[node]
                row[name] = _Span(name, tree.tier(name), first, starts[node] + _slots(instance, node, look))
        rows.append(list(row.values()))
    return starts, rows, depth


def _slots(instance: Instance, node: str, look: Look) -> int:
    return int(instance.nodes[node].allocatable.get(look.resource, 0))


def _pods(instance: Instance, placement: Placement, node: str) -> Iterator[Pod]:
    """Pods on a node: those that are there before, then new ones."""
    yield from (pod for pod in instance.pods.values() if pod.node == node and pod.state is PodState.BOUND)
    yield from (instance.pods[pod] for pod, where in placement.node_of.items() if where == node)


def _free(x: float, y: float, step: float, slots: int, look: Look) -> Iterator[str]:
    return (box(x + slot * step, y, step - look.gap, ROW - GAP, "free") for slot in range(slots))


def _pod(pod: Pod, place: tuple[float, float, float], colours: Mapping[str, int], look: Look) -> Iterator[str]:
    x, y, width = place
    group = pod.group.name if pod.group is not None else pod.name
    kind = "other" if pod.node is not None else f"gang-{colours[group] % COLOURS}"
    yield box(x, y, width, ROW - GAP, kind)
    if look.names:
        yield text(x + width / 2, y + 15, pod.name.replace("-w-", "-"), "pod", "middle")


def colours_of(instance: Instance) -> dict[str, int]:
    """A colour for each group, in their order."""
    return {name: index for index, name in enumerate(dict.fromkeys(key.name for key in instance.groups))}


def waiting(instance: Instance, placement: Placement) -> list[Key]:
    """Pending pods that a placement leaves."""
    return [pod for pod in _pending(instance) if pod not in placement.node_of]


def _pending(instance: Instance) -> Iterable[Key]:
    return [key for key, pod in instance.pods.items() if pod.state is PodState.PENDING]
