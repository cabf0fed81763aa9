"""Changes of a group's demands on other pods, and of the labels by which these count.

Near and apart from others, spread (C12, C13, C14), in one domain of a label (C7), or in one of their own (C15).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from placer.answers.explain.cases import Change
from placer.answers.explain.group_changes import CALLS, MADE_AGAIN, GroupObject
from placer.answers.explain.node_changes import few_nodes, label_change
from placer.base.words import and_list
from placer.problem import Instance, Pod
from placer.problem.neighbour_demand import DOMAIN_ANNOTATIONS
from placer.problem.neighbours import DomainUnit, Neighbours

if TYPE_CHECKING:
    from placer.answers.explain.question import Question

VALUES = 16

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def labelled_domains(question: Question) -> Iterator[Change]:
    """Nodes without a topology key that become part of a domain: one that is there, else a new one."""
    for key in question.topology_keys():
        nodes = question.instance.nodes
        bare = [node for node in nodes.values() if key not in node.labels]
        values = sorted({node.labels[key] for node in nodes.values() if key in node.labels})[:VALUES]
        for value in [*values, f"{key.rsplit('/', 1)[-1]}-new"] if bare else ():
            opened = {node.name: replace(node, labels={**node.labels, key: value}) for node in bare}
            chosen = few_nodes(question, opened)
            if chosen:
                yield label_change(question, chosen, opened)
                break


def looser_neighbours(question: Question) -> Iterator[Change]:
    """The group's demands on its neighbours left out, or asked for less strictly."""
    if "PodAffinity" in question.codes:
        yield from _left_out(question, "PodAffinity", "affinity", "podAffinity", "be near")
    if "PodAntiAffinity" in question.codes:
        yield from _left_out(question, "PodAntiAffinity", "anti_affinity", "podAntiAffinity", "be apart from")
    if "TopologySpread" in question.codes:
        yield from _wider_skew(question)
    yield from _not_in_one_domain(question)
    yield from _not_alone(question)


def _left_out(question: Question, code: str, field: str, written: str, asks: str) -> Iterator[Change]:
    pods = [pod for pod in question.pods if getattr(pod.neighbours, field)]

    def without(asked: Neighbours) -> Neighbours:
        return replace(asked, **{field: ()})

    if pods and question.fits(question.with_neighbours(without)):
        specs = filter(None, (question.case.pod_spec(pod.key) for pod in pods))
        edits = tuple(dict.fromkeys(f"{words}.affinity.{written}.{_REQUIRED}=" for words, _ in specs))
        said = f"do not require its pods to {asks} others by {and_list(question.topology_keys([code]))}{MADE_AGAIN}"
        yield Change(said, (CALLS, len(edits)), set_=edits)


def _not_in_one_domain(question: Question) -> Iterator[Change]:
    keys = {unit.topology_key for pod in question.pods for unit in pod.neighbours.units if _is_of_group(question, unit)}
    wide = _with_units(question, lambda unit: not _is_of_group(question, unit))
    if "TopologyTooNarrow" in question.codes and keys and question.fits(wide):
        edit = GroupObject(question).set("spec.schedulingConstraints", None)
        yield Change(f"do not ask for one domain of {and_list(sorted(keys))}", (CALLS, len(keys)), set_=(edit,))


def _is_of_group(question: Question, unit: DomainUnit) -> bool:
    return unit.name == str(question.key)


def _not_alone(question: Question) -> Iterator[Change]:
    if question.codes.isdisjoint(("TopologyTooNarrow", "Exclusive")):
        return
    edits = [edit for pod in question.pods for edit in _annotations(question, pod)]
    wide = _with_units(question, lambda unit: _is_of_group(question, unit))
    if edits and question.fits(wide):
        units = {unit for pod in question.pods for unit in pod.neighbours.units if not _is_of_group(question, unit)}
        said = f"do not ask for {and_list(sorted(set(map(_domain_words, units))))}{MADE_AGAIN}"
        yield Change(said, (CALLS, len(edits)), set_=tuple(edits))


def _domain_words(unit: DomainUnit) -> str:
    return f"a domain of {unit.topology_key} of its own" if unit.exclusive else f"one domain of {unit.topology_key}"


def _with_units(question: Question, keep: Callable[[DomainUnit], bool]) -> Instance:
    return question.with_neighbours(lambda asked: replace(asked, units=tuple(filter(keep, asked.units))))


def _annotations(question: Question, pod: Pod) -> Iterator[str]:
    document = question.case.document("Pod", pod.namespace, pod.name) or {}
    written = document.get("metadata", {}).get("annotations") or {}
    yield from (
        f"pod/{pod.namespace}/{pod.name}:metadata.annotations[{name}]="
        for name in DOMAIN_ANNOTATIONS
        if name in written
    )


def _wider_skew(question: Question) -> Iterator[Change]:
    """None is above the number of pods that may be counted."""
    most = len(question.instance.pods)

    def wide(skew: int) -> Instance:
        return question.with_neighbours(
            lambda asked: replace(
                asked, spread=tuple(replace(each, max_skew=max(skew, each.max_skew)) for each in asked.spread)
            )
        )

    skew = 2 + bisect_left(range(2, most + 1), True, key=lambda skew: question.fits(wide(skew)))
    if skew <= most:
        edits = dict.fromkeys(edit for pod in question.pods for edit in _skews(question, pod, skew))
        yield Change(f"let maxSkew be {skew}{MADE_AGAIN}", (CALLS, skew), set_=tuple(edits))


def _skews(question: Question, pod: Pod, skew: int) -> Iterator[str]:
    words, spec = question.case.pod_spec(pod.key) or ("", {})
    written: Sequence[dict[str, Any]] = spec.get("topologySpreadConstraints") or ()
    for at, each in enumerate(written):
        if each.get("whenUnsatisfiable") == "DoNotSchedule" and each.get("maxSkew", 0) < skew:
            yield f"{words}.topologySpreadConstraints[{at}].maxSkew={skew}"
