"""The notebook of the documentation runs, and shows what it is kept with."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.write_notebook import NOTEBOOK, executed

KEPT = json.loads(NOTEBOOK.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def notebook() -> Any:
    return executed()


def outputs(notebook: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Kind and content of every output, a text as one, what was printed and what was shown."""
    for cell in notebook["cells"]:
        for output in cell.get("outputs", ()):
            data = output.get("data") or {"text/plain": output["text"]}
            yield from ((kind, part if isinstance(part, str) else "".join(part)) for kind, part in sorted(data.items()))


def told(notebook: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What the outputs say; seconds differ from call to call, and pictures with the version that draws them."""
    seconds = re.compile(r"(?<=read |uild |olve |rify )\d+\.\d|(?<=after )\d+\.\d s")
    return [(kind, seconds.sub("", text) if kind.startswith("text/") else "") for kind, text in outputs(notebook)]


def test_it_shows_what_it_is_kept_with(notebook: Any) -> None:
    assert told(notebook) == told(KEPT), "python -m tests.write_notebook makes it anew"


def test_it_says_what_its_text_says(notebook: Any) -> None:
    printed = "\n".join(text for kind, text in outputs(notebook) if kind == "text/plain")
    assert "<Instance: 200 nodes, 33 HyperNodes, 647 pods, 647 of them pending in 56 groups>" in printed
    assert "647 pods placed; 41 rules broken, the first: PodGroup default/job-00 asks for highest tier 1" in printed
    assert "0 broken by whole_gangs" in printed
    rows = dict(re.findall(r"^(\w+) +(\d+ pods; breaks .*)$", printed, re.MULTILINE))
    assert rows == {
        "volcano": "609 pods; breaks nothing",
        "naive": "647 pods; breaks {'C7': 41}",
        "mine": "641 pods; breaks nothing",
        "solved": "647 pods; breaks nothing",
    }
    assert "Evict 1 single pod:\n  default/notebook-0, 1 pod" in printed
    # The summary of a result stands there once: rich, which makes it, shows nothing of its own accord.
    kinds = [kind for kind, _ in outputs(notebook)]
    assert (kinds.count("text/html"), kinds.count("image/png")) == (1, 2)


@pytest.mark.exhaustive
def test_it_draws_and_stays_small(notebook: Any) -> None:
    for each in (notebook, KEPT):
        pictures = [base64.b64decode(text) for kind, text in outputs(each) if kind == "image/png"]
        assert all(5_000 < len(picture) < 60_000 and picture.startswith(b"\x89PNG") for picture in pictures)
    assert NOTEBOOK.stat().st_size < 150_000


def test_it_is_kept_as_it_was_executed_from_top_to_bottom() -> None:
    counts = [cell["execution_count"] for cell in KEPT["cells"] if cell["cell_type"] == "code"]
    assert counts == list(range(1, len(counts) + 1))
