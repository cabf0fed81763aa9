"""Where the greedy does not admit a group, a search is asked before it is said to wait, or a change not to help."""

from __future__ import annotations

import pytest

from placer.answers.explain import cases
from placer.answers.explain import tried_changes as changes
from placer.answers.explain.cases import Case
from placer.answers.explain.explanation import explain, find_groups
from placer.base.deadline import Deadline
from placer.kube.manifests import from_documents
from tests.support import Document, node, pod, pod_group


@pytest.fixture(autouse=True)
def time_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """The searches end because they prove something."""
    monkeypatch.setattr(cases, "SEARCH", 60.0)
    monkeypatch.setattr(changes, "MORE", 120.0)


def gang(name: str, *gpus: int) -> list[Document]:
    return [
        pod_group(name, minMember=len(gpus)),
        *(pod(f"{name}-{at}", group=name, gpu=n) for at, n in enumerate(gpus)),
    ]


def test_a_group_that_only_a_search_admits_does_not_wait() -> None:
    sizes = {"n0": 11, "n1": 7, "n2": 11, "n3": 8, "n4": 9}
    documents = [node(name, gpu=gpu) for name, gpu in sizes.items()]
    documents += [
        *gang("g0", 5),
        *gang("g1", 3, 2, 5, 2),
        *gang("g2", 2, 2),
        *gang("g3", 6, 6),
        *gang("g4", 4, 6, 2, 5),
    ]
    case = Case(from_documents(documents))
    key = find_groups(case, "g0")[0]
    assert case.placed is not None
    assert key not in case.placed.admitted
    told = list(explain(case, None, Deadline.within(3600)))
    assert key not in [each.group for each in told if not each.admitted]


def test_a_change_that_only_a_search_shows_to_help() -> None:
    mine = gang("g0", 3)
    mine[1]["spec"]["nodeSelector"] = {"pool": "x"}
    others = [node("n1", gpu=9), node("n2", gpu=7), *gang("g1", 6), *gang("g2", 5, 5), *gang("g3", 2, 3, 3)]
    opened = node("n0", {"pool": "x"}, gpu=7)
    key = find_groups(Case(from_documents([opened, *mine, *others])), "g0")[0]
    greedily = Case(from_documents([opened, *mine, *others])).placed
    assert greedily is not None
    assert key not in greedily.admitted

    case = Case(from_documents([{**opened, "spec": {"unschedulable": True}}, *mine, *others]))
    (told,) = explain(case, [key], Deadline.within(3600))
    assert not told.admitted
    (change,) = [each for each in told.changes if each.change.message == "uncordon Node n0"]
    assert change.change.set_ == ("node/n0:spec.unschedulable=false",)
