"""Docstrings for the site: names that they refer to become links, and their literal blocks code."""

from __future__ import annotations

import re
from typing import Any

import griffe

_ROLE = re.compile(r":(?:attr|class|data|func|meth|mod):`(~?)\.?([^`]+)`")
#: A line that ends in ``::``, and the indented lines below it.
_LITERAL = re.compile(r"^(?P<said>[^\n]*)::\n\n(?P<block>(?:[ ]{4}[^\n]*\n|\n(?=[ ]{4}))+)", re.MULTILINE)


class Roles(griffe.Extension):
    """Rewrites every docstring of a package once all of it is loaded, when each name can be looked up."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Rewrite them."""
        queue: list[griffe.Object] = [pkg]
        while queue:
            found = queue.pop()
            if isinstance(found, griffe.Class):
                _construct(found)
            if found.docstring is not None:
                found.docstring.value = _rewritten(found, found.docstring.value)
            queue += [each for each in found.members.values() if isinstance(each, griffe.Object)]


def _construct(found: griffe.Class) -> None:
    """Give a class that takes its fields the parameters that it gets from there, which its docstring describes."""
    if "__init__" in found.members or not any(str(base).endswith(("NamedTuple", "Struct")) for base in found.bases):
        return
    kind = griffe.ParameterKind.positional_or_keyword
    fields = [each for each in found.members.values() if isinstance(each, griffe.Attribute)]
    parameters = [
        griffe.Parameter(each.name, annotation=each.annotation, kind=kind, default=each.value) for each in fields
    ]
    found.set_member("__init__", griffe.Function("__init__", parameters=griffe.Parameters(*parameters)))


def _rewritten(where: griffe.Object, text: str) -> str:
    def linked(match: re.Match[str]) -> str:
        short, name = match.groups()
        name = "".join(name.split())
        shown = name.rpartition(".")[2] if short else name
        return f'<autoref identifier="{_path(where, name)}" optional><code>{shown}</code></autoref>'

    return _ROLE.sub(linked, _LITERAL.sub(_fenced, text + "\n").rstrip("\n"))


def _path(where: griffe.Object, name: str) -> str:
    """Full name of what a docstring names: seen from where it stands, or from the classes and modules around it."""
    scope: griffe.Object | None = where
    while scope is not None:
        try:
            return scope.resolve(name)
        except griffe.NameResolutionError:
            if name.partition(".")[0] in scope.members:
                return f"{scope.path}.{name}"
        scope = scope.parent
    return name


def _fenced(match: re.Match[str]) -> str:
    said, block = match["said"], re.sub(r"^ {4}", "", match["block"].rstrip("\n"), flags=re.MULTILINE)
    return f"{said}:\n\n```text\n{block}\n```\n\n" if said else f"```text\n{block}\n```\n\n"
