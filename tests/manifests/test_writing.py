"""Writing: the same bytes every time, read back by us and by others."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from placer.kube import manifests
from placer.kube.manifests.writing import to_json, to_yaml
from tests.examples import examples

POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"nodeName": "on", "volumes": []}}


@pytest.mark.parametrize("name", ["a.json", "a.yaml", "a.json.gz", "a.yaml.gz", "a"])
def test_files(name: str, tmp_path: Path) -> None:
    manifests.dump(POD, tmp_path / name)
    first = (tmp_path / name).read_bytes()
    manifests.dump(POD, tmp_path / name)
    assert (tmp_path / name).read_bytes() == first
    text = gzip.decompress(first) if name.endswith(".gz") else first
    assert text.decode() == (to_json(POD) if ".json" in name else to_yaml(POD))
    assert manifests.load([tmp_path / name]).pods[0].spec.node_name == "on"


scalars = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(st.characters(codec="utf-8"))
values = st.recursive(
    scalars | st.sampled_from(["on", "0o7", "1e3", "12:30", "2026-01-31", "=", "<<", "~", "-", "null", ".inf", "0x1"]),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(values)
@examples(150)
def test_a_yaml_1_1_reader_reads_the_same(value: Any) -> None:
    assert yaml.safe_load(to_yaml({"value": value})) == {"value": value}


def test_infinity_is_not_written() -> None:
    for write in (to_json, to_yaml):
        with pytest.raises(ValueError, match="Out of range"):
            write({"a": float("inf")})
