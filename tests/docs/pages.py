"""Pages whose commands run: what a page says to type is typed, and what it says is printed is what is printed.

A fenced block with a ``title`` is a file; one of ``sh`` or ``python`` is run, all of a page in one folder, one after
the other. One of ``bash`` needs a network or a cluster and is not run. The ``text`` block that follows is the output;
one that ends with ``...`` shows its first lines. A command without such a block prints nothing. A block of ``console``
is both: a command behind ``$``, and below it the output. After a change of the output, ``python -m tests.docs.pages
[PAGE...]`` writes the pages again; read the difference.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["PAGES", "Block", "blocks", "run", "shown_of", "timeless"]

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    path
    for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    if re.search(r"^```(text|console)$", path.read_text(encoding="utf-8"), re.MULTILINE)
)
#: What commands of a page may read of the repository.
GIVEN = ("docs", "instances", "models")
COLUMNS = "120"
_BLOCK = re.compile(
    r'^```(?P<language>\w+)(?: title="(?P<title>[^"]+)")?\n(?P<text>.*?)^```$', re.DOTALL | re.MULTILINE
)
#: Installs placer and runs its program; tests run the one that is there.
_INSTALL = re.compile(r"^python3 -m venv .*&& \.venv/bin/(?=placer )", re.MULTILINE)
_CUT = "...\n"
#: Who proves a value first is a matter of time.
_PROVERS = re.compile(r"(proved by|no more is possible \() ?[a-z ,]+")
_SECONDS = re.compile(r"\b(after|read|build|solve|verify) \d+\.\d")
#: The last two columns of ``placer compare``: seconds and MiB.
_COSTS = re.compile(r" +\d+\.\d\d +[\d,]+$")
#: How long a group has waited, in a table of them.
_AGE = re.compile(r"(?<= )\d+[dhms](\d+[hms])?(?=  )")


@dataclass(frozen=True)
class Block:
    """A fenced block of a page, and where its text stands."""

    language: str
    title: str | None
    text: str
    start: int


def blocks(page: str) -> list[Block]:
    """Fenced blocks of a page; one of ``console`` is two."""
    found = []
    for match in _BLOCK.finditer(page):
        language, text, start = match["language"], match["text"], match.start("text")
        if language == "console":
            command, _, output = text.partition("\n")
            found.append(Block("sh", None, f"{command.removeprefix('$ ')}\n", start))
            language, text, start = "text", output, start + len(command) + 1
        found.append(Block(language, match["title"], text, start))
    return found


def run(page: str, folder: Path) -> Iterator[tuple[Block, str, Block | None]]:
    """Do what a page says in an empty folder.

    Yields
    ------
    tuple
        Of each block that is run: the block, what it printed, and the block that says what it prints.
    """
    for name in GIVEN:
        (folder / name).symlink_to(ROOT / name)
    found = blocks(page)
    for block, behind in zip(found, [*found[1:], None], strict=True):
        if block.title is not None:
            (folder / block.title).write_text(block.text, encoding="utf-8")
        elif block.language in ("sh", "python"):
            said = behind if behind is not None and behind.language == "text" else None
            yield block, _printed(block, folder), said


def _printed(block: Block, folder: Path) -> str:
    """Output of a block, errors included; the last command of a block must end with 0."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    python = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PATH": path, "PYTHONPATH": python, "COLUMNS": COLUMNS}
    words = {"sh": ["bash", "-c"], "python": [sys.executable, "-c"]}[block.language]
    done = subprocess.run(
        [*words, _INSTALL.sub("", block.text)],
        cwd=folder,
        env=environment,
        text=True,
        stdout=-1,
        stderr=subprocess.STDOUT,
        check=False,
    )
    assert done.returncode == 0, f"{block.text}ends with {done.returncode}:\n{done.stdout}"
    return "".join(f"{line.rstrip()}\n" for line in done.stdout.splitlines())


def timeless(text: str) -> list[str]:
    """Lines of an output without what differs from run to run: seconds, ages, MiB, provers, and the room they take."""
    lines = (
        _PROVERS.sub(r"\1", _SECONDS.sub(r"\1", _AGE.sub("age", _COSTS.sub("", line.rstrip()))))
        for line in text.splitlines()
    )
    return [re.sub(r"(?<=\S) {2,}", "  ", line) for line in lines]


def shown_of(printed: str, said: Block) -> str:
    """The part of an output that a block shows: all of it, or as many first lines as stand there before ``...``."""
    if not said.text.endswith(_CUT):
        return printed
    count = said.text.count("\n") - 1
    return "".join(printed.splitlines(keepends=True)[:count]) + _CUT


def _written_anew(page: str) -> str:
    """The page with what its commands print now."""
    with tempfile.TemporaryDirectory() as folder:
        ran = list(run(page, Path(folder)))
    for _, printed, said in reversed(ran):
        if said is None:
            assert not printed, f"a command prints what the page does not say:\n{printed}"
        elif timeless(said.text) != timeless(shown := shown_of(printed, said)):
            page = page[: said.start] + shown + page[said.start + len(said.text) :]
    return page


def main() -> None:
    """Write all pages again, or those that are named."""
    for path in map(Path, sys.argv[1:]) if sys.argv[1:] else PAGES:
        path.write_text(_written_anew(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
