"""What a file of the repository refers to is in the repository: links of pages, pages that code names, paths."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from docs.hooks.codes import CONDITIONS, EVENTS
from placer.base.codes import FINDINGS, REASONS

ROOT = Path(__file__).parent.parent
FOLDERS = ("placer", "models", "tests", "deploy", "instances", "docs", ".ci")
#: Text that others wrote, files that are meant to be wrong, and this one, which names what is not there.
OTHERS = (
    "tests/data/",
    "tests/test_references.py",
    "deploy/crds/volcano/",
    "deploy/crds/scheduler-plugins/",
    "deploy/crds/noderesourcetopology/",
)
ENDINGS = {"", ".md", ".mzn", ".py", ".toml", ".yaml"}
#: Words that look like a reference and are none: file, the word.
MEANT = {
    ("instances/seeds/README.md", "docs/design/Network"),
    ("instances/seeds/README.md", "Scheduling.md"),  # end of a name with spaces, in Volcano's repository
    ("deploy/crds/README.md", "deploy/crds/FOLDER"),
    ("tests/cluster/test_server.py", "tests/cluster/test_x.py"),
    ("tests/docs/test_site.py", "api/api.md"),  # made when the site is
    ("tests/docs/test_site.py", "docs/notebook.md"),
}
_PAGE = re.compile(r"[\w./*-]*\w\.md\b")
_MODULE = re.compile(r"`(\w+\.py)`")
_PATH = re.compile(rf"(?<![\w/.@-])(?:{'|'.join(map(re.escape, FOLDERS))})/[\w./*{{}}-]+")
_FUNCTION = re.compile(r"[\"'](placer(?:\.\w+)+):(\w+)[\"']")
_URL = re.compile(r"https?:\S+")
_LINK = re.compile(r"\]\(([^)\s]+)\)")


@cache
def files() -> tuple[Path, ...]:
    top = [path for path in ROOT.iterdir() if path.is_file() and path.suffix in ENDINGS and path.name != "LICENSE"]
    inner = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.is_file()]
    return tuple(
        sorted(path for path in top + inner if path.suffix in ENDINGS and not name_of(path).startswith(OTHERS))
    )


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def references(text: str) -> Iterator[str]:
    """Pages, modules and paths that a text names."""
    plain = _URL.sub(" ", text)
    yield from _PAGE.findall(plain)
    yield from _MODULE.findall(plain)
    yield from (word.rstrip(".-") for word in _PATH.findall(plain) if "{" not in word)  # what is made up has braces


def is_there(word: str, folder: Path) -> bool:
    """Whether a word names something, from the root of the repository or from the folder of who says it; the name of a
    page or a module alone, any such file: code puts paths together.
    """
    if "/" not in word and any(path.name == word for path in files()):
        return True
    word = word.lstrip("/")
    found = (path.resolve() for base in (ROOT, folder) for path in (base / word, *base.glob(word)))
    return any(path.exists() and path.is_relative_to(ROOT) for path in found)


@pytest.mark.parametrize("path", files(), ids=name_of)
def test_what_a_file_names_is_there(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    missing = [
        word for word in references(text) if (name_of(path), word) not in MEANT and not is_there(word, path.parent)
    ]
    assert not missing, f"{name_of(path)} refers to what is not in the repository: {missing}"


def test_functions_that_text_names_are_there() -> None:
    """Searches run in a process of their own and are named by text, which neither imports nor mypy check."""
    named = {
        (name_of(path), *found)
        for path in files()
        if path.suffix in {".py", ".toml"}
        for found in _FUNCTION.findall(path.read_text(encoding="utf-8"))
    }
    missing = {
        (file, f"{module}:{function}")
        for file, module, function in named
        if not re.search(rf"^(?:def {function}\b|from .*\b{function}$)", source(module), re.MULTILINE)
    }
    assert missing <= MEANT
    assert {module for _, module, _ in named} >= {"placer.search.exact.method", "placer.search.preempt.method"}


def source(module: str) -> str:
    """Text of a module or of a package; empty where there is none."""
    path = ROOT / module.replace(".", "/")
    places = (path.with_suffix(".py"), path / "__init__.py")
    return next((place.read_text(encoding="utf-8") for place in places if place.exists()), "")


@pytest.mark.parametrize("path", [path for path in files() if path.suffix == ".md"], ids=name_of)
def test_links_of_a_page_lead_somewhere(path: Path) -> None:
    for link in _LINK.findall(path.read_text(encoding="utf-8")):
        target, _, anchor = link.partition("#")
        if not _URL.match(link):
            page = path.parent / target if target else path
            assert page.exists(), link
            assert not anchor or anchor in anchors(page), link


def anchors(page: Path) -> set[str]:
    """Headings of a page, as links name them."""
    text = page.read_text(encoding="utf-8")
    heads = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    if "<!-- made: reasons -->" in text:  # the site makes these
        heads += [*REASONS, *FINDINGS, *CONDITIONS, *EVENTS]
    return {re.sub(r"[^\w\s-]", "", head.lower()).strip().replace(" ", "-") for head in heads}


def test_a_reference_that_leads_nowhere_is_seen() -> None:
    text = "as contract.md says (../shared/spec.md, placer/nowhere.py, https://x.example/a.md, models/README.md)"
    words = list(references(text))
    assert words == ["contract.md", "../shared/spec.md", "models/README.md", "placer/nowhere.py", "models/README.md"]
    assert [is_there(word, ROOT / "tests") for word in words] == [False, False, True, False, True]
