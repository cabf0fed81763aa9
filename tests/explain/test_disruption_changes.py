"""The least that must be evicted or moved, among the changes that would admit a group."""

from __future__ import annotations

import pytest

from placer.answers.explain import cluster_changes
from placer.answers.explain import tried_changes as changes
from placer.answers.explain.cases import Case, Change
from placer.answers.explain.explanation import explain, find_groups
from placer.answers.explain.question import Question
from placer.answers.explain.tried_changes import TriedChange
from placer.base.deadline import Deadline
from placer.kube.manifests import from_documents
from tests.support import Document, node, pod, pod_group

OWNED = {
    "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "u", "controller": True}]
}


@pytest.fixture(autouse=True)
def time_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """The searches end because they prove something."""
    monkeypatch.setattr(changes, "MORE", 120.0)
    monkeypatch.setattr(cluster_changes, "DISTURBING", 60.0)


def runs(name: str, on: str, priority: int = 0, **requests: object) -> Document:
    return pod(name, node=on, metadata=OWNED, spec={"priority": priority}, **requests)


def waits(*cpus: int) -> list[Document]:
    pods = [pod(f"g-{at}", group="g", cpu=cpu, spec={"priority": 5}) for at, cpu in enumerate(cpus)]
    return [pod_group("g", minMember=len(cpus)), *pods]


def disturbing(*documents: Document) -> list[TriedChange]:
    """The changes of this kind that are told of group g."""
    case = Case(from_documents(documents))
    (told,) = explain(case, [find_groups(case, "g")[0]], Deadline.within(3600))
    return [each for each in told.changes if each.change.message.startswith(("evict ", "move "))]


def test_the_fewest_are_evicted() -> None:
    """Of one node two pods had to go, of the other one."""
    small = [runs(f"small-{at}", "n0", cpu=4) for at in range(2)]
    (found,) = disturbing(node("n0", cpu=8), node("n1", cpu=8), *small, runs("large", "n1", cpu=8), *waits(8))
    said = "evict Pod/default/large (1 pod) (proved to be the least; placer preempt --for default/g)"
    assert (found.change.message, found.change.without, found.change.set_) == (said, ("pod/default/large",), ())
    assert found.loses == ()


def test_what_can_be_moved_is_not_evicted() -> None:
    """Once one of them has moved to the other node, there is a whole node."""
    two = [runs("a", "n0", cpu=4), runs("b", "n1", cpu=4)]
    (found,) = disturbing(node("n0", cpu=8), node("n1", cpu=8), *two, *waits(8))
    assert found.change.message.startswith("move Pod/default/")
    assert found.change.without == ()
    assert found.change.set_ in (("pod/default/a:spec.nodeName=n1",), ("pod/default/b:spec.nodeName=n0",))


def test_nothing_is_proposed_where_what_runs_is_as_important() -> None:
    assert disturbing(node("n0", cpu=8), runs("a", "n0", priority=5, cpu=8), *waits(8)) == []


def test_both_are_named_and_counted() -> None:
    """A gang goes whole; what is left over finds a place elsewhere."""
    gang = [pod_group("eval", minMember=2)]
    gang += [pod(f"eval-{at}", group="eval", node="n0", metadata=OWNED, spec={"priority": 1}, cpu=3) for at in range(2)]
    others = [runs("idle", "n0", cpu=2), runs("full", "n1", priority=9, cpu=6)]
    (found,) = disturbing(node("n0", cpu=8), node("n1", cpu=8), *gang, *others, *waits(8))
    words = "evict PodGroup/default/eval (2 pods) and move Pod/default/idle (1 pod)"
    assert found.change.message.startswith(words)
    assert found.change.without == ("pod/default/eval-0", "pod/default/eval-1")
    assert found.change.set_ == ("pod/default/idle:spec.nodeName=n1",)


def test_beside_others_that_are_placed_first() -> None:
    """The free node goes to who asks for it with a higher priority; of the others, one has less to lose."""
    runs_there = [runs("a", "n1", priority=1, cpu=8), runs("b", "n2", priority=9, cpu=8)]
    first = pod("first", cpu=8, spec={"priority": 7})
    (found,) = disturbing(*(node(f"n{at}", cpu=8) for at in range(3)), *runs_there, first, *waits(8))
    assert found.change.message == "evict Pod/default/a (1 pod) (proved to be the least; placer preempt)"
    assert (found.change.without, found.change.set_, found.loses) == (("pod/default/a",), (), ())


def test_what_does_not_run_yet_is_not_evicted() -> None:
    """Only the other group that waits could go for it, and that asks with as high a priority."""
    rival = pod("first", cpu=8, spec={"priority": 5})
    assert disturbing(node("n0", cpu=8), rival, *waits(8)) == []


@pytest.mark.parametrize("label", ["pod-template-hash", "statefulset.kubernetes.io/pod-name"])
def test_nobody_waits_for_the_end_of_pods_that_never_end(label: str) -> None:
    running = [runs("web", "n0", priority=9, cpu=8), runs("job", "n1", priority=9, cpu=8)]
    running[0]["metadata"]["labels"] = {label: "web"}
    case = Case(from_documents([node("n0", cpu=8), node("n1", cpu=8), *running, *waits(8)]))
    (told,) = explain(case, [find_groups(case, "g")[0]], Deadline.within(3600))
    ended = [each.change.message for each in told.changes if each.change.message.startswith("wait until")]
    assert ended == ["wait until Pod default/job ends (1 pod)"]


def test_gangs_that_help_only_in_the_screen_do_not_hide_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two gangs whose end helps the group alone are not enough where their room goes to a more urgent pod."""
    tried = changes._tried

    def refused(question: Question, change: Change) -> TriedChange | None:
        lost = any(name in change.message for name in ("Pod default/a ", "Pod default/b "))
        return None if lost else tried(question, change)

    monkeypatch.setattr(changes, "_tried", refused)
    kept = [runs(name, f"n{at}", priority=9, cpu=8) for at, name in enumerate("abcd")]
    case = Case(from_documents([*(node(f"n{at}", cpu=8) for at in range(4)), *kept, *waits(8)]))
    (told,) = explain(case, [find_groups(case, "g")[0]], Deadline.within(3600))
    ended = [each.change.message for each in told.changes if each.change.message.startswith("wait until")]
    assert ended == [f"wait until Pod default/{name} ends (1 pod)" for name in "cd"]
