"""The pages of the API: a page for each package, in the words of the table of packages in CONTRIBUTING."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
#: Rooms that hold nothing to call.
_WITHOUT = {"schemas", "__main__"}
#: Modules with a page of their own, since results and the functions of ``placer.api`` consist of them.
_MODULES = {"problem": ("placement", "outcome", "disruption", "result", "reading"), "rules": ("scoring",)}


@cache
def rooms() -> tuple[str, ...]:
    """Rooms and packages in them that have public names, lowest first."""
    named = [each for row, _ in _table() for room in row if room not in _WITHOUT for each in (room, *_inner(room))]
    return tuple(room for room in named if _public(room))


def _inner(room: str) -> list[str]:
    """Packages directly in a room, and its modules that have a page."""
    packages = sorted(path.parent.name for path in (ROOT / "placer" / room).glob("*/__init__.py"))
    return [f"{room}.{name}" for name in (*_MODULES.get(room, ()), *packages)]


def _table() -> Iterator[tuple[list[str], str]]:
    """Rows of the table of packages: the packages, and their content."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for line in text[text.index("| package | content |") :].split("\n\n")[0].splitlines()[2:]:
        cells = re.split(r"(?<!\\)\|", line)
        names = re.findall(r"`([^`]+)`", cells[1])
        yield [name.removeprefix("placer/").strip("/").removesuffix(".py") for name in names], cells[2].strip()


def _public(room: str) -> list[str]:
    """``__all__`` of a room; of a module without one its functions and classes."""
    path = ROOT / "placer" / room.replace(".", "/")
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    body = ast.parse(path.read_text(encoding="utf-8")).body
    for node in body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            return [str(name) for name in ast.literal_eval(node.value)]
    return [node.name for node in body if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name[0] != "_"]


def page_of(room: str) -> str:
    """Path of a room's page."""
    return f"docs/api/{room}.md"


def as_markdown(room: str) -> str:
    """The page of a room: its first lines and its public names. A search finds every other page first."""
    members = "".join(f"\n        - {name}" for name in sorted(_public(room), key=str.lower))
    options = f"    options:\n      heading_level: 1\n      show_root_full_path: true\n      members:{members}\n"
    return f"---\ntitle: {room}\nsearch:\n  boost: 0.1\n---\n\n::: placer.{room}\n{options}"


def rooms_as_markdown() -> str:
    """The table of rooms, each with a link to its page."""
    rows = []
    for names, words in _table():
        pages = [each for name in names for each in (name, *_inner(name)) if each in (*names, *rooms())]
        linked = [f"[`placer.{name}`]({name}.md)" if name in rooms() else f"`placer.{name}`" for name in pages]
        rows.append(f"| {', '.join(linked)} | {words} |")
    return "\n".join(["| package | content |", "| --- | --- |", *rows])
