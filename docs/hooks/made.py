"""Parts of pages that are made with the site: ``<!-- made: NAME -->`` stands for what a function below makes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import api
import codes
import commands
import fields
import marks
import metrics
import pictures
import policy
import shipped
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from placer.answers.report.palette import declarations

ROOT = Path(__file__).parents[2]
_PLACE = re.compile(r"^<!-- made: ([\w-]+) -->$", re.MULTILINE)

#: What there is to stand in a page.
PARTS: Mapping[str, Callable[[], str]] = {
    "commands": commands.as_markdown,
    "fields": fields.as_markdown,
    "marks": marks.as_markdown,
    "metrics": metrics.as_markdown,
    "policy": policy.as_markdown,
    "rooms": api.rooms_as_markdown,
    **codes.PARTS,
    **{f"instances-{family}": partial(shipped.as_markdown, family) for family in shipped.families()},
    **pictures.PICTURES,
    **pictures.FIGURE_PARTS,
}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Give the pages of the rooms their place in the navigation."""
    part = next(part for part in config.nav if part.get("API"))
    part["API"] = [part["API"], *({room: api.page_of(room)} for room in api.rooms())]
    return config


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add a page for each room of the package, and the figures of the benchmarks."""
    for room in api.rooms():
        page = File.generated(config, api.page_of(room), content=api.as_markdown(room))
        page.dest_uri = page.dest_uri.removeprefix("docs/")
        files.append(page)
    for name, picture in pictures.figures(ROOT / "models" / "benchmarks.jsonl"):
        file = File.generated(config, f"docs/figures/{name}.svg", content=picture)
        file.dest_uri = f"figures/{name}.svg"
        files.append(file)
    target = "assets/palette.css"
    palette = File.generated(config, f"docs/{target}", content=_palette())
    palette.dest_uri = target
    files.append(palette)
    return files


def _palette() -> str:
    """The colours of the report, as the theme says light and dark."""
    light, dark = (declarations(dark=each) for each in (False, True))
    return f':root, [data-md-color-scheme="default"] {{ {light} }}\n[data-md-color-scheme="slate"] {{ {dark} }}\n'


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Put the parts into their places; a name that there is not is an error."""
    return _PLACE.sub(lambda match: PARTS[match[1]](), markdown)
