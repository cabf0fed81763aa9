"""The arrays of what tenants write: as much work as they write, and not its square."""

from __future__ import annotations

import pytest

from placer.arrays.dense_builder import make_dense
from placer.problem.instance import Pod
from placer.problem.neighbours import PodSelector
from tests.hostile import HOSTILE
from tests.support import instance_of, node


@pytest.mark.parametrize("kind", HOSTILE)
def test_terms_are_looked_up_by_label(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With twice as many pods each selector looks at no more of them, and no row is added for terms that are alike."""
    looks = 0
    matches = PodSelector.matches

    def counted(selector: PodSelector, pod: Pod, namespaces: object) -> bool:
        nonlocal looks
        looks += 1
        return matches(selector, pod, namespaces)  # type: ignore[arg-type]

    monkeypatch.setattr(PodSelector, "matches", counted)
    found = []
    for size in (20, 40):
        instance = instance_of(*(node(f"n{number}") for number in range(3)), *HOSTILE[kind](size))
        looks = 0
        rows = make_dense(instance).neighbours
        entries = 0
        if rows is not None:
            every = (*rows.repulsions, *rows.attractions, *rows.spreads)
            entries = sum(len(row.owners) + len(row.matched) for row in every)
        found.append((looks, entries))
    assert found[1][0] <= 2.2 * found[0][0] + 20
    assert found[1][1] <= 2.2 * found[0][1] + 20
