"""The functions of ``import placer``: each is a thin door to the code of the command that has its name."""

from __future__ import annotations

import json
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from placer.base.errors import NothingFound, UsageError
from placer.problem import ANY_SCHEDULER, GroupKey, Instance
from placer.problem.placement import Placement
from placer.problem.result import Result

if TYPE_CHECKING:
    from placer.answers.audit.groups import AuditEntry
    from placer.answers.explain.explanation import Explanation
    from placer.answers.progress import Progress
    from placer.kube.manifests import Text
    from placer.lab.comparing import ComparisonRow
    from placer.lab.generate import Generated
    from placer.problem.placement import Score, Violation
    from placer.problem.result import TracePoint

#: A limit of time: seconds, or a duration such as ``10s`` or ``1m30s``.
Seconds = float | str

#: Where pods go: a placement, a result, or pod to node, the pod by its key or as ``namespace/name``.
Placed = Placement | Result | Mapping[Any, str]


# -------------------------------------------------------------------------------------------------------------- reading


@dataclass(frozen=True, slots=True)
class _ReadFrom:
    sources: tuple[str | Path | Text, ...]
    edits: Mapping[str, Any]
    reading: Mapping[str, Any]

    def again(self, objects: Sequence[str] = ()) -> Instance:
        from placer.problem.reading import read as read_sources
        from placer.problem.wanted import wanted_text

        with_ = [*self.edits["with_"], *wanted_text(objects)]
        return read_sources(*self.sources, **{**self.edits, "with_": with_}, **self.reading)


#: Address of an instance that lives to what it was read from.
_ORIGINS: dict[int, _ReadFrom] = {}


def read(
    *sources: object,
    scheduler_name: str | None = None,
    strict: bool = False,
    with_: Sequence[object] = (),
    without: Sequence[str] = (),
    set_: Sequence[str] = (),
    lenient: bool = False,
    kubeconfig: str | None = None,
    context: str | None = None,
    display: bool = False,
) -> Instance:
    """Read an instance from files, from objects in memory, or from a cluster, of which nothing is changed.

    Parameters
    ----------
    sources
        Paths, Kubernetes objects as dicts or of a client, lists of these, a :class:`placer.Model`, or generated.
        All of them together are one instance. None: the content of the cluster.
    scheduler_name
        Whose pending pods are ours; default: any scheduler's, of a snapshot those that it was taken for.
    strict
        Findings are errors.
    with_, without, set_
        What if: objects added, removed, changed, as the options of these names take them.
    lenient
        Objects that cannot be read are findings.
    kubeconfig, context
        Which cluster, where there are no sources; default: as kubectl.
    display
        Show progress on standard error.

    Raises
    ------
    BadInstance, StrictFindings, UsageError
        As :func:`placer.problem.reading.read`.
    ClusterError, TypeError
        The cluster does not answer; a source is neither a path nor an object.

    Examples
    --------
    >>> import placer
    >>> node = {"kind": "Node", "apiVersion": "v1", "metadata": {"name": "n1"}, "status": {"allocatable": {"cpu": "4"}}}
    >>> placer.read(node)
    <Instance: 1 node, 0 pods, 0 of them pending in 0 groups>
    """
    from placer.kube.manifests import as_texts, read_texts
    from placer.problem.reading import read as read_sources

    if sources and not (kubeconfig is None and context is None):
        raise UsageError("kubeconfig, context: found sources next to them, expected one or the other")
    with _progress(display) as progress:
        progress.phase("reading")
        if sources:
            paths = [each for path in as_texts(sources) for each in (read_texts([path]) if path == "-" else [path])]
        else:
            from placer.passes.cluster import Client, take

            client, whose = Client.connect(kubeconfig, context), scheduler_name or ANY_SCHEDULER
            paths = [take(client, whose, lambda what, count: progress.phase(f"{what} {count:,}")).text()]
        edits: dict[str, Any] = {"with_": as_texts(with_, "with_"), "without": without, "set_": set_}
        origin = _ReadFrom(tuple(paths), edits, {"scheduler_name": scheduler_name, "lenient": lenient})
        instance = read_sources(*paths, strict=strict, **edits, **origin.reading)
    _ORIGINS[id(instance)] = origin
    weakref.finalize(instance, _ORIGINS.pop, id(instance), None).atexit = False
    return instance


def _origin(instance: Instance) -> _ReadFrom:
    _expect("instance", instance, Instance)
    found = _ORIGINS.get(id(instance))
    if found is None:
        raise UsageError("instance: found one that was changed, expected one as placer.read returned it")
    return found


# ------------------------------------------------------------------------------------------------------------ arguments


#: How to make what was expected, by the type that is expected.
_MAKES = {Instance: "placer.read({value!r}) makes one"}


def _expect(name: str, value: object, kind: type) -> None:
    if not isinstance(value, kind):
        hint = f"; {_MAKES[kind].format(value=value)}" if kind in _MAKES and isinstance(value, (str, Path)) else ""
        article = "an" if kind.__name__[0] in "AEIOU" else "a"
        raise TypeError(f"{name}: found {type(value).__name__}, expected {article} {kind.__name__}{hint}")


def _seconds(name: str, value: Seconds | None) -> float | None:
    expected = "expected seconds or a duration such as 10s or 1m30s"
    if isinstance(value, str):
        from placer.base.deadline import duration

        try:
            return duration(value)
        except ValueError:
            raise UsageError(f"{name}: found {value!r}, {expected}") from None
    if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float))):
        raise TypeError(f"{name}: found {type(value).__name__}, {expected}")
    return value


def _placement(instance: Instance, value: Placed) -> Placement:
    _expect("instance", instance, Instance)
    if isinstance(value, Result):
        if value.placement is None:
            raise NothingFound(value.nothing_found)
        return value.placement
    if isinstance(value, Mapping):
        from placer.lab.own_policies import placement_from

        return placement_from("placement", value, instance)
    _expect("placement", value, Placement)
    return value


def _asked(instance: Instance, value: Placed) -> tuple[Instance, Placement]:
    """With wanted pods and without lost nodes."""
    from placer.problem.disruption import as_asked

    placement = _placement(instance, value)
    if placement.wanted and id(instance) in _ORIGINS:
        instance = _origin(instance).again(placement.wanted)
    return as_asked(instance, placement), placement


@contextmanager
def _progress(display: bool, limit: float | None = None) -> Iterator[Progress]:
    from placer.answers.progress import Progress

    with Progress(quiet=not display, began=time.monotonic(), limit=limit, lines=display) as progress:
        yield progress


def _planned(
    instance: Instance,
    decide: Callable[..., Result],
    lines: Callable[[Result], Iterable[str]],
    time_limit: Seconds | None,
    display: bool,
    **limits: int | None,
) -> Result:
    _expect("instance", instance, Instance)
    limit = _seconds("time_limit", time_limit)
    with _progress(display, limit) as progress:
        progress.phase("looking for the fewest pods that must go or move")
        found = decide(time_limit=limit, began=time.monotonic(), watch=progress.plan, **limits)
    return replace(found, plan=tuple(lines(found)))


# ------------------------------------------------------------------------------------------------------------- deciding


def solve(
    instance: Instance,
    *,
    method: str = "auto",
    time_limit: Seconds | None = 60.0,
    work_limit: float | None = None,
    workers: int | None = None,
    seed: int = 0,
    require_all: bool = False,
    milp_solver: str = "HiGHS",
    watch: Callable[[TracePoint], None] | None = None,
    display: bool = False,
    **more: Any,
) -> Result:
    """Decide where the pending pods go.

    Parameters
    ----------
    instance, method
        ``auto`` (never worse than ``greedy``), ``greedy``, ``exact``, ``decomposed`` or ``milp``.
    time_limit
        Seconds of the whole call, or a duration such as ``10s``. None: until everything is proved.
    work_limit
        Deterministic work in place of seconds; with ``workers=1`` repeatable.
    workers
        Solver threads; default: the cores this process may use.
    seed
        0 .. 2^31 - 1.
    require_all
        Look for a proof that not all pods can be placed.
    milp_solver
        PuLP's name of the solver of method ``milp``.
    watch
        Called whenever the answer or a bound gets better.
    display
        Show progress on standard error.
    more
        ``began``, ``earlier``, ``executor`` and ``meanwhile`` as :func:`placer.answers.solving.solve` takes them.

    Returns
    -------
    Result
        Verified. Without a placement only for ``exact`` and ``milp`` (verdict UNKNOWN).

    Raises
    ------
    UsageError, TypeError
        An argument is out of its range, or of another type.
    """
    from placer.answers.solving import solve as decide

    _expect("instance", instance, Instance)
    limit = _seconds("time_limit", time_limit)
    with _progress(display, limit) as progress:
        progress.knows(instance)
        return decide(
            instance,
            method=method,
            time_limit=limit,
            work_limit=work_limit,
            workers=workers,
            seed=seed,
            require_all=require_all,
            milp_solver=milp_solver,
            watch=watch or progress.point,
            **{"began": time.monotonic(), **more},
        )


def verify(instance: Instance, placement: Placed) -> list[Violation]:
    """Find every rule that a placement breaks.

    Parameters
    ----------
    instance, placement
        A placement of any origin, a result, or a mapping of pods to nodes.
    """
    from placer.rules import verify as judge

    return judge(*_asked(instance, placement))


def score(instance: Instance, placement: Placed, *, disturbing: bool = False) -> Score:
    """Compute the values of a placement, in the order in which they are compared.

    Parameters
    ----------
    instance, placement
        As :func:`placer.verify` takes them.
    disturbing
        Whether evictions and moves count, though this placement has none.
    """
    from placer.rules.scoring import score as measure

    return measure(*_asked(instance, placement), disturbing=disturbing)


def explain(
    instance: Instance,
    group: str | GroupKey | None = None,
    *,
    time_limit: Seconds | None = 60.0,
    display: bool = False,
) -> list[Explanation]:
    """Say why groups wait, and which changes would admit them.

    Parameters
    ----------
    instance
        Its sources are read again for each change that is tried.
    group
        One group, or the one of a pod, as ``namespace/name``; default: all that wait.
    time_limit, display
        As of :func:`placer.solve`.

    Returns
    -------
    list[Explanation]
        One for each group: ``corrections`` are the causes, ``changes`` the changes that were tried.
    """
    from placer.answers.explain.cases import Case
    from placer.answers.explain.explanation import explain as find_causes
    from placer.answers.explain.explanation import find_groups
    from placer.base.deadline import Deadline

    origin = _origin(instance)
    limit = _seconds("time_limit", time_limit)
    with _progress(display, limit) as progress:
        progress.phase("reading")
        deadline = Deadline() if limit is None else Deadline.within(limit)
        case = Case.read(origin.sources, **origin.edits, **origin.reading)
        if case.instance.digest != instance.digest:
            raise UsageError("instance: its files changed since they were read, expected the same; read them again")
        progress.phase("placing all waiting groups")
        keys = find_groups(case, group) if isinstance(group, str) else None if group is None else [group]
        return list(find_causes(case, keys, deadline, say=progress.phase))


def preempt(
    instance: Instance,
    for_: str | GroupKey | None = None,
    *,
    time_limit: Seconds | None = 60.0,
    workers: int | None = None,
    seed: int = 0,
    display: bool = False,
) -> Result:
    """Find out which running pods must go for groups that wait: the least, with a proof. Nothing is carried out.

    Parameters
    ----------
    instance, for_
        One group, or those of a pod or workload, as ``namespace/name``; default: all that wait.
    time_limit, workers, seed, display
        As of :func:`placer.solve`.
    """
    from placer.answers.explain.prices import rivals
    from placer.answers.making_room import groups_named
    from placer.answers.making_room import preempt as decide
    from placer.answers.summary.preempting import preempt_lines, rival_lines
    from placer.problem.what_if import only_waiting

    def lines(result: Result) -> Iterable[str]:
        return *preempt_lines(result), *(rival_lines(instance, rivals(instance, result)) if for_ is not None else ())

    _expect("instance", instance, Instance)
    asked = groups_named(instance, for_) if isinstance(for_, str) else {for_}
    ask = partial(decide, instance if for_ is None else only_waiting(instance, asked))
    return _planned(instance, ask, lines, time_limit, display, workers=workers, seed=seed)


def defrag(
    instance: Instance,
    want: str | None = None,
    *,
    free_domains: str | None = None,
    max_moves: int | None = None,
    time_limit: Seconds | None = 60.0,
    workers: int | None = None,
    seed: int = 0,
    display: bool = False,
) -> Result:
    """Find out which running pods must move for a wanted job, or for domains to be empty: the least, with a proof.

    Nothing is carried out.

    Parameters
    ----------
    instance, want
        ``N x PODS x RESOURCES [@ TIER]``, such as ``4 x 8 x nvidia.com/gpu=8 @ 1``, or a file with a job.
    free_domains
        ``K@TIER`` in place of it: so many HyperNodes of a tier are to be empty.
    max_moves
        Never move more pods; default: any number.
    time_limit, workers, seed, display
        As of :func:`placer.solve`.
    """
    from placer.answers.making_room import room_asked
    from placer.answers.summary.preempting import defrag_lines

    if (want is None) == (free_domains is None):
        raise UsageError("want, free_domains: found both or neither, expected one of the two")
    _expect("instance", instance, Instance)
    count, ask = room_asked(want, free_domains, max_moves, instance, lambda added: _origin(instance).again(added))
    lines = partial(defrag_lines, wanted=count)
    return _planned(instance, partial(ask, count), lines, time_limit, display, workers=workers, seed=seed)


def repair(
    instance: Instance,
    lost: str | Sequence[str] | None = None,
    *,
    time_limit: Seconds | None = 60.0,
    workers: int | None = None,
    seed: int = 0,
    display: bool = False,
) -> Result:
    """Place the pods of lost nodes again, and disturb the rest least. Nothing is carried out.

    Parameters
    ----------
    instance, lost
        Names of nodes to count as lost; default: those that are not Ready.
    time_limit, workers, seed, display
        As of :func:`placer.solve`.
    """
    from placer.answers.making_room import lost_named
    from placer.answers.making_room import repair as decide
    from placer.answers.summary.preempting import repair_lines

    _expect("instance", instance, Instance)
    names = lost if lost is None or isinstance(lost, str) else ",".join(lost)
    ask, lines = partial(decide, instance, lost_named(instance, names)), partial(repair_lines, instance)
    return _planned(instance, ask, lines, time_limit, display, workers=workers, seed=seed)


def audit(instance: Instance, *, time_limit: Seconds | None = 60.0, display: bool = False) -> list[AuditEntry]:
    """Compare each group that runs, whoever placed it, with the rules and with the best there is.

    Parameters
    ----------
    instance, time_limit, display
        As of :func:`placer.solve`.
    """
    from placer.answers.audit.groups import audit as look
    from placer.base.deadline import Deadline

    _expect("instance", instance, Instance)
    limit = _seconds("time_limit", time_limit)
    with _progress(display, limit) as progress:
        return look(instance, Deadline() if limit is None else Deadline.within(limit), say=progress.phase)


# ------------------------------------------------------------------------------------------------------------ comparing


class ComparisonTable(list["ComparisonRow"]):
    """Rows of a comparison, one for each policy, which a notebook shows as ``placer compare`` prints them."""

    def __init__(self, instance: Instance, rows: Sequence[ComparisonRow]) -> None:
        super().__init__(rows)
        self.instance = instance

    def summary(self) -> str:
        """The same as text."""
        from placer.answers.summary import as_text
        from placer.cli.lab.comparing import print_rows

        return as_text(partial(print_rows, self.instance, list(self)))

    def _repr_html_(self) -> str:
        from placer.answers.summary import as_html
        from placer.cli.lab.comparing import print_rows

        return as_html(partial(print_rows, self.instance, list(self)))


def compare(
    instance: Instance,
    policies: str | Sequence[str] | Mapping[str, Placed | Callable[..., Any] | None] | None = None,
    *,
    scheduler_config: Sequence[str] = (),
    time_limit: Seconds | None = 60.0,
    work_limit: float | None = None,
    workers: int | None = None,
    seed: int = 0,
    strict: bool = False,
    display: bool = False,
) -> ComparisonTable:
    """Run policies and methods on one instance.

    Parameters
    ----------
    instance, policies
        Names, as ``placer compare --policies`` takes them; or a mapping from a name to a function of a module, to a
        placement or to a result, and from a name that is known to None. Default: every policy, greedy and auto.
    scheduler_config
        Files with the configuration of a scheduler, for the policy that it belongs to.
    time_limit, work_limit, workers, seed, display
        As of :func:`placer.solve`; of each method.
    strict
        Faults of a placement in a file are errors.
    """
    from tempfile import TemporaryDirectory

    from placer.cli.lab.shared import scheduler_configs
    from placer.lab.comparing import DEFAULT
    from placer.lab.comparing import compare as run

    _expect("instance", instance, Instance)
    with TemporaryDirectory() as folder, _progress(display) as progress:
        if isinstance(policies, Mapping):
            policies = [_own(instance, name, each, Path(folder)) for name, each in policies.items()]
        rows = run(
            instance,
            DEFAULT if policies is None else policies.split(",") if isinstance(policies, str) else policies,
            time_limit=_seconds("time_limit", time_limit) if work_limit is None else None,
            work_limit=work_limit,
            workers=workers,
            seed=seed,
            arguments=scheduler_configs(scheduler_config),
            begin=progress.phase,
            strict=strict,
        )
    return ComparisonTable(instance, rows)


def _own(instance: Instance, name: str, policy: Any, folder: Path) -> str:
    if policy is None:
        return name
    if callable(policy):
        module, function = getattr(policy, "__module__", "__main__"), getattr(policy, "__qualname__", "?")
        if module == "__main__" or "<" in function:
            expected = "one of a module, which another process can import"
            raise UsageError(f"policies: found function {function} of this session as {name}, expected {expected}")
        return f"{name}={module}:{function}"
    from placer.answers.document import bindings_document

    file = folder / f"{len(list(folder.iterdir()))}.json"
    if isinstance(policy, Result):
        policy.save(file)
    else:
        file.write_text(json.dumps(bindings_document(_placement(instance, policy))), encoding="utf-8")
    return f"{name}={file}"


def generate(family: str, **options: Any) -> Generated:
    """Make an instance from a seed; ``placer.read`` takes it.

    Parameters
    ----------
    family
        Its name (:data:`placer.lab.generate.FAMILIES`).
    options
        Flags of ``placer generate FAMILY``, with ``_`` for ``-``.

    Examples
    --------
    >>> import placer
    >>> made = placer.generate("planted", nodes=4, leaf_size=2, seed=7)
    >>> len(placer.read(made).nodes)
    4
    """
    from placer.lab.generate import generate as make

    return make(family, **options)


# -------------------------------------------------------------------------------------------------------------- showing


def plot(instance: Instance, placement: Placed | None = None, *, title: str = "", axes: Any = None) -> Any:
    """Draw the nodes and a placement: a column for each node, a square for each GPU, a colour for each group.

    Parameters
    ----------
    instance, placement
        As :func:`placer.verify` takes it; None: the present.
    title, axes
        Axes of matplotlib to draw on; default: a new figure, which needs matplotlib (:class:`UsageError`).
    """
    from placer.lab.figures.drawing import draw_nodes

    placed = Placement() if placement is None else _placement(instance, placement)
    return draw_nodes(instance, placed, title, axes)


def report(
    instance: Instance,
    placement: Placed | None = None,
    output: str | Path = "report.html",
    *,
    comparison: Sequence[ComparisonRow] | None = None,
    strict: bool = False,
) -> Path:
    """Write one HTML page that shows a cluster and a placement; returns its path.

    Parameters
    ----------
    instance, placement
        As :func:`placer.verify` takes it; None: the present.
    output
        A path that ends in ``.html``.
    comparison
        Of :func:`placer.compare`.
    strict
        Findings are errors.
    """
    from placer.answers.document import bindings_document, placement_document
    from placer.answers.report import contents, page, told_apart
    from placer.cli import printing
    from placer.kube.manifests import Text

    origin, target = _origin(instance), Path(output)
    sources: list[Any] = [*origin.sources]
    printing.writable([target], (".html",))
    if placement is not None:
        placed = _placement(instance, placement)
        if isinstance(placement, Result):
            document = placement_document(placement).as_dict()
        else:
            document = bindings_document(placed)
        sources.append(Text("placement", json.dumps(document).encode()))
        instance = origin.again(placed.wanted) if placed.wanted else instance
    if comparison is not None:
        sources.append(Text("comparison", json.dumps([row.as_dict() for row in comparison]).encode()))
    found = contents(instance, told_apart(sources), strict=strict)
    with printing.written(str(target)):
        target.write_text(page(found), encoding="utf-8")
    return target


def html_of(result: Result) -> str:
    """The summary of a result as HTML."""
    from placer.answers.summary import as_html

    return as_html(partial(_print, result, False))


def summary_of(result: Result, wide: bool = False) -> str:
    """The summary of a result as text."""
    from placer.answers.summary import as_text

    return as_text(partial(_print, result, wide))


def _print(result: Result, wide: bool, console: Any) -> None:
    from placer.answers.summary import print_findings, print_summary

    if not result.plan:
        print_summary(result, console, wide=wide)
        return
    for line in result.plan:
        console.print(line, markup=False)
    print_findings([each for each in result.findings if each.code != "ProtectionCosts"], console)  # a line says it


def save_result(result: Result, path: str | Path, bindings: bool = False) -> None:
    """Write a result as the Placement, or as v1 Bindings."""
    from placer.answers.document import bindings_document, placement_document
    from placer.cli import printing

    if result.placement is None:
        raise NothingFound(result.nothing_found)
    printing.writable([Path(path)])
    printing.write(bindings_document(result.placement) if bindings else placement_document(result).as_dict(), str(path))
