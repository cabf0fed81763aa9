"""Figures drawn with matplotlib, an extra, as PDF, SVG or PNG; the same numbers give the same file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from placer.base.errors import UsageError
from placer.base.extras import how_to_install
from placer.base.quantity import Resources
from placer.problem import Instance, Pod
from placer.problem.gpus import gpus_in
from placer.problem.placement import Placement

__all__ = ["draw", "draw_nodes"]

#: Colours that people who see few of them can tell apart (Okabe and Ito); beside them markers and dashes tell the same.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
#: ... and of groups in a picture of nodes, next to each other in any order.
SOFT = ("#4c78a8", "#f2a65a", "#72b7b2", "#e0787a", "#54a24b", "#b79a20", "#88d27a", "#9d7660", "#d67195", "#b279a2")
RAN = "#c8ccd0"  #: ... and of what ran before
MARKERS = "osD^vPX"
DASHES = ("-", "--", "-.", ":")

#: Inches of a panel.
WIDTH, HEIGHT = 6.4, 4.2
#: ... and of a name on an upright axis, at least, and of each line of it.
ROW, LINE = 0.32, 0.11
#: Most nodes of a picture that has gaps between them.
APART = 50
#: Below this a logarithmic axis that has a zero is linear.
LINEAR = 0.01


def draw(figure: Mapping[str, Any], target: str | Path) -> None:
    """Draw a figure into a ``.pdf``, ``.svg`` or ``.png``; in an SVG each series is a group with the id ``series:`` and
    its name.

    Raises
    ------
    UsageError
        matplotlib is not installed; the file cannot be written.
    """
    matplotlib = _matplotlib()
    from matplotlib.figure import Figure as Canvas

    path, panels = Path(target), figure["panels"]
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "placer", "font.size": 9}):
        canvas = Canvas(
            figsize=(WIDTH * len(panels), max(HEIGHT, 1 + max(map(_height_of_names, panels)))), layout="constrained"
        )
        for axes, panel in zip(canvas.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
            _draw_panel(axes, panel)
        date = {"Date": None} if path.suffix == ".svg" else {"CreationDate": None} if path.suffix == ".pdf" else {}
        try:
            canvas.savefig(path, dpi=200, metadata=date)
        except OSError as error:
            raise UsageError(f"{path}: cannot be written: {error.strerror}") from error


def _matplotlib() -> Any:
    try:
        import matplotlib
    except ImportError:
        raise UsageError(f"figures need matplotlib, found none: {how_to_install('lab')}") from None
    return matplotlib


def draw_nodes(instance: Instance, placement: Placement, title: str, axes: Any = None) -> Any:
    """Draw the load of the nodes: a column for each node, leaf by leaf, a square for each GPU, else for a tenth of a
    node.

    Pods of one group have one colour, running pods are grey.

    Parameters
    ----------
    axes
        Default: a new figure.

    Raises
    ------
    UsageError
        matplotlib is not installed.
    """
    _matplotlib()
    if axes is None:
        from matplotlib import pyplot

        _, axes = pyplot.subplots(figsize=(9, 1.8), layout="constrained")
    nodes = sorted(instance.nodes, key=lambda name: (instance.topology.path(name)[::-1], name))
    gpus = max((gpus_in(node.allocatable) for node in instance.nodes.values()), default=0)
    _draw_blocks(axes, instance, placement, {name: place for place, name in enumerate(nodes)}, in_gpus=gpus > 0)
    leaves = [instance.topology.leaf.get(name) for name in nodes]
    edges = [place + 0.5 for place, (one, other) in enumerate(pairwise(leaves)) if one != other]
    tall, word = (gpus, "GPUs") if gpus else (10, "tenths of a node")
    axes.vlines(edges, 0, tall, color="#333333", linewidth=0.6)
    axes.set(title=title, xticks=[], xlim=(-0.6, len(nodes) - 0.4), ylim=(0, tall))
    axes.set(xlabel="nodes, leaf by leaf", ylabel=word)
    return axes


def _draw_blocks(
    axes: Any, instance: Instance, placement: Placement, columns: Mapping[str, int], *, in_gpus: bool
) -> None:
    tops, wide = dict.fromkeys(columns, 0.0), 0.9 if len(columns) <= APART else 1.0
    for pod, node, colour in _coloured(instance, placement):
        height = gpus_in(pod.requests) if in_gpus else 10 * _share(pod.requests, instance.nodes[node].allocatable)
        axes.bar(columns[node], height, wide, tops[node], color=colour, linewidth=0)
        tops[node] += height


def _coloured(instance: Instance, placement: Placement) -> Iterator[tuple[Pod, str, str]]:
    yield from ((pod, pod.node, RAN) for pod in instance.pods.values() if pod.node and pod.node in instance.nodes)
    waiting = (key for key, group in instance.groups.items() if group.pending)
    colours: dict[object, str] = {key: SOFT[place % len(SOFT)] for place, key in enumerate(waiting)}
    for key, node in placement.node_of.items():
        yield instance.pods[key], node, colours[instance.pods[key].group]


def _share(requests: Resources, allocatable: Resources) -> float:
    return max((amount / allocatable[name] for name, amount in requests.items() if allocatable[name]), default=0.0)


def _height_of_names(panel: Mapping[str, Any]) -> float:
    """Inches that the names of an upright axis need: rows are equal, so the longest name says how high each is."""
    names = panel["x"]["names"]
    return len(names) * max(ROW, LINE * max((name.count("\n") + 1 for name in names), default=0))


def _draw_panel(axes: Any, panel: Mapping[str, Any]) -> None:
    x, y, places = panel["x"], panel["y"], [series["name"] for series in panel["series"] if not series["of"]]
    for series in panel["series"]:
        _draw_series(axes, series, places.index(series["of"] or series["name"]), len(places))
    axes.set_title(panel["title"])
    if x["names"]:
        axes.set_yticks(range(len(x["names"])), x["names"], fontsize=6)
        axes.set_ylim(len(x["names"]) - 0.5, -0.5)
        axes.set_xlabel(y["label"])
    else:
        axes.set_xlabel(x["label"])
        axes.set_ylabel(y["label"])
    if x["log"]:
        axes.set_xscale("log")
    if y["log"]:
        _set_log_heights(axes, panel)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=7)


def _set_log_heights(axes: Any, panel: Mapping[str, Any]) -> None:
    if min(point["y"] for series in panel["series"] for point in series["points"]) > 0:
        axes.set_yscale("log")
    else:
        axes.set_yscale("symlog", linthresh=LINEAR)


def _draw_series(axes: Any, series: Mapping[str, Any], place: int, count: int) -> None:
    name, points, dash = series["name"], series["points"], DASHES[place % len(DASHES)]
    look = {"color": COLOURS[place % len(COLOURS)], "label": name, "gid": f"series:{name}"}
    dots = {"linestyle": "none", "marker": MARKERS[place % len(MARKERS)], "markersize": 4}
    xs, ys = [point["x"] for point in points], [point["y"] for point in points]
    match series["kind"]:
        case "steps":
            axes.step(xs, ys, where="post", linestyle=dash, **look)
        case "line":
            axes.plot(xs, ys, linestyle=dash, linewidth=1, **look)
        case "points":
            axes.plot(xs, ys, **dots, **look)
        case "dots":  # one below the other; shares near 100 % would all look alike as bars
            heights = [x + 0.6 * ((place + 0.5) / count - 0.5) for x in xs]
            axes.plot(ys, heights, **dots, **look)
            lows, highs = [point["low"] for point in points], [point["high"] for point in points]
            axes.hlines(heights, lows, highs, color=look["color"], linewidth=1)
