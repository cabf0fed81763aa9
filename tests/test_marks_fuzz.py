"""Random marks, sound or not, on random pods of small instances: no gang in part, no protected pod disturbed.

What a gang needs is read here once more, from the texts of its pods, by code that shares nothing with the reader.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import placer
from placer.answers.making_room import preempt
from placer.kube.manifests import from_documents, validate
from placer.kube.marks import MARKS, Mark, Meaning, Place
from placer.problem import GroupKey, Instance, Key
from placer.problem.instance_builder import make_instance
from placer.rules import verify

TINY = Path(placer.__file__).parent.parent / "instances" / "tiny"
FILES = sorted(path for path in TINY.glob("*.yaml") if ".best." not in path.name)
BLOCK = 25
BLOCKS = [
    pytest.param(first, marks=[pytest.mark.exhaustive] if first >= BLOCK else []) for first in range(0, 2000, BLOCK)
]
#: Marks that stand on pods.
ON_PODS = [mark for mark in MARKS if "Pod" in mark.on and mark.place in (Place.LABEL, Place.ANNOTATION)]
#: Those of them that say how large a gang is.
SIZES = [mark for mark in ON_PODS if mark.name.endswith(("min-available", "total-count", "task-groups", "min-member"))]
VALUES = [
    *("", "0", "1", "2", "3", "-1", "two", "1e9", "99999999999999999999", "true", "false", "a", "b"),
    *("only-waiting", "once-satisfied", "NonStrict", "non-preemptible", "[", "{}", "[[[", "null", "\u0663"),
    *('["default/a", "default/b"]', '["default/a"]', '[{"name": "a", "minMember": 2}]'),
    *('[{"name": "a", "minMember": -2}]', '[{"name": "a", "minMember": 1}, {"name": "b", "minMember": 1}]'),
    *('{"gatherStrategy": [{"strategy": "MustGather"}]}', '{"gatherStrategy": [{"strategy": "PreferGather"}]}'),
]
#: What makes a whole gang of one system, so that not every draw is refused.
SOUND: list[dict[Place, dict[str, str]]] = [
    {
        Place.LABEL: {
            "pod-group.scheduling.sigs.k8s.io/name": "a",
            "pod-group.scheduling.sigs.k8s.io/min-available": "2",
        }
    },
    {
        Place.ANNOTATION: {
            "gang.scheduling.koordinator.sh/name": "a",
            "gang.scheduling.koordinator.sh/min-available": "2",
        }
    },
    {
        Place.LABEL: {"kueue.x-k8s.io/pod-group-name": "a"},
        Place.ANNOTATION: {"kueue.x-k8s.io/pod-group-total-count": "2"},
    },
    {
        Place.LABEL: {"applicationId": "a"},
        Place.ANNOTATION: {
            "yunikorn.apache.org/task-group-name": "a",
            "yunikorn.apache.org/task-groups": '[{"name": "a", "minMember": 2}]',
        },
    },
    {Place.ANNOTATION: {"scheduling.volcano.sh/group-min-member": "2"}},
]


def drawn(seed: int) -> list[dict[str, Any]]:
    """Objects of a small instance, some of its pods with marks."""
    rng = random.Random(seed)
    documents = [copy.deepcopy(each) for each in yaml.safe_load_all(rng.choice(FILES).read_text()) if each]
    pods = [each for each in documents if each["kind"] == "Pod"]
    for pod in rng.sample(pods, rng.randint(0, len(pods))):
        for place, marks in rng.choice(SOUND).items():
            _bear(pod, place, marks)
    for pod in rng.sample(pods, rng.randint(0, min(3, len(pods)))):
        mark: Mark = rng.choice(ON_PODS if rng.random() < 0.7 else SIZES)
        _bear(pod, mark.place, {mark.name: rng.choice(VALUES)})
    for number, pod in enumerate(pods):
        pod["metadata"]["uid"] = f"u{number}"
        if rng.random() < 0.3:
            pod["metadata"]["ownerReferences"] = [
                {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "r", "controller": True}
            ]
    return documents


def _bear(pod: dict[str, Any], place: Place, marks: dict[str, str]) -> None:
    where = "labels" if place is Place.LABEL else "annotations"
    pod["metadata"][where] = {**(pod["metadata"].get(where) or {}), **marks}


def _texts(documents: list[dict[str, Any]]) -> dict[Key, tuple[dict[str, str], dict[str, str], str]]:
    found = {}
    for each in documents:
        if each["kind"] == "Pod":
            metadata = each["metadata"]
            key = Key(metadata.get("namespace", "default"), metadata["name"])
            phase = (each.get("status") or {}).get("phase", "")
            found[key] = (metadata.get("labels") or {}, metadata.get("annotations") or {}, phase)
    return found


def least(key: GroupKey, members: list[tuple[dict[str, str], dict[str, str], str]]) -> int | None:
    """How many pods a gang by marks needs, read naively; None where a text of it is no number."""
    where = {
        "pod-group.scheduling.sigs.k8s.io": (0, "pod-group.scheduling.sigs.k8s.io/min-available"),
        "gang.scheduling.koordinator.sh": (1, "gang.scheduling.koordinator.sh/min-available"),
        "kueue.x-k8s.io": (1, "kueue.x-k8s.io/pod-group-total-count"),
        "scheduling.volcano.sh": (1, "scheduling.volcano.sh/group-min-member"),
    }
    if key.api_group == "yunikorn.apache.org":
        texts = {
            each[1]["yunikorn.apache.org/task-groups"]
            for each in members
            if "yunikorn.apache.org/task-groups" in each[1]
        }
        try:
            sums = [sum(entry["minMember"] for entry in json.loads(text)) for text in texts]
        except (ValueError, TypeError, KeyError):
            return None
        return max(sums, default=None)
    place, mark = where[key.api_group]
    if any(each[1].get("kueue.x-k8s.io/pod-group-fast-admission") == "true" for each in members):
        return 1
    texts = {each[place][mark] for each in members if mark in each[place]}
    if any(not text.isascii() or not text.isdigit() for text in texts):
        return None
    return max(map(int, texts), default=1 if "koordinator" in mark or "volcano" in mark else None)


def complaints(documents: list[dict[str, Any]], instance: Instance) -> Iterator[str]:
    """Say which gang is placed in part, and which rule a placement breaks."""
    result = placer.solve(instance, method="greedy")
    assert result.placement is not None
    yield from (str(violation) for violation in verify(instance, result.placement))
    new = {binding.pod for binding in result.placement.bindings}
    texts = _texts(documents)
    for key, group in instance.groups.items():
        marked = key.api_group not in ("", "scheduling.k8s.io", "scheduling.x-k8s.io", "scheduling.run.ai")
        if (
            not marked
            or not new.intersection(group.pending)
            or not key.name.startswith(("a", "podgroup-", "yunikorn-"))
        ):
            continue
        needed = least(key, [texts[pod] for pod in (*group.pending, *group.bound)])
        count = len(new.intersection(group.pending)) + group.placed_before
        if needed is None or count < needed:
            yield f"{key} of which {needed} are needed has {count}"


def disturbed(instance: Instance) -> Iterator[str]:
    """Say who of the protected would go for groups that wait."""
    plan = preempt(instance, time_limit=None, workers=1)
    if plan.placement is not None:
        gone = (*plan.placement.evictions, *(each.pod for each in plan.placement.moves))
        yield from (f"{key} is protected" for key in gone if instance.pods[key].protected)
        yield from (str(violation) for violation in verify(plan.instance, plan.placement))


@pytest.mark.usefixtures("search_here")
@pytest.mark.parametrize("first", BLOCKS)
def test_no_mark_halves_a_gang_or_disturbs_who_is_protected(first: int) -> None:
    for seed in range(first, first + BLOCK):
        documents = drawn(seed)
        instance = make_instance(validate(from_documents(documents)))
        assert not list(complaints(documents, instance)), seed
        if seed % 5 == 0:  # takes longer
            assert not list(disturbed(instance)), seed


def test_marks_decide_something_in_what_is_drawn() -> None:
    """Among the first seeds are gangs that are placed, that wait, that are invalid and that are refused."""
    found = set()
    for seed in range(BLOCK):
        instance = make_instance(validate(from_documents(drawn(seed))))
        result = placer.solve(instance, method="greedy")
        for key, group in instance.groups.items():
            if group.stated:
                found.add(result.reasons[key].code if key in result.reasons else "placed")
        found |= {"refused" for pod in instance.pending if pod.unsupported}
    assert {"placed", "InvalidGroup", "GangIncomplete", "refused"} <= found


def test_protection_is_among_the_marks() -> None:
    assert any(mark.meaning is Meaning.PROTECTED for mark in ON_PODS)
