"""Each field of each kind that is read is in one class, and what is said to be ignored is a finding."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from docs.hooks.field_uses import IGNORED, NEUTRAL, REFUSED, FieldClass, field_uses
from placer.kube.kinds import BY_ATTRIBUTE, KindInfo, read_fields, types_of

KINDS = [info for info in BY_ATTRIBUTE.values() if types_of(info)]


@pytest.mark.parametrize("info", KINDS, ids=lambda info: f"{info.kind}.{info.group}")
def test_each_field_of_a_kind_is_in_one_class(info: KindInfo) -> None:
    uses = list(field_uses(info))
    assert [each.path for each in uses if each.use is None] == []
    classes = Counter(path for path, _ in {(each.path, each.use) for each in uses})
    assert [path for path, count in classes.items() if count > 1] == []


def test_no_field_stands_in_two_tables() -> None:
    neutral = {(called, name) for called, names in NEUTRAL.items() for name in names.split()}
    assert not neutral & IGNORED.keys()
    assert not neutral & REFUSED.keys()
    assert not IGNORED.keys() & REFUSED.keys()


def test_every_row_is_a_field_of_some_kind() -> None:
    neutral = {(called, name) for called, names in NEUTRAL.items() for name in names.split()}
    used = {each.at for info in KINDS for each in field_uses(info)}
    assert {*neutral, *IGNORED, *REFUSED} <= used


def test_what_is_ignored_is_declared_so_that_it_can_be_told() -> None:
    for info in KINDS:
        declared = read_fields(info)
        for each in field_uses(info):
            if each.use is FieldClass.IGNORED and each.at != ("ReplicaSet", "spec"):
                here: Any = declared
                for step in each.path.split("."):
                    here = here.names[step]
