"""Notebooks of ``docs/`` as pages, with the outputs that they are kept with."""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

#: What of an output is shown: the first of these that it has.
_SHOWN = ("image/svg+xml", "image/png", "text/markdown", "text/html", "text/plain")


def notebooks(config: MkDocsConfig) -> list[Path]:
    """Notebooks directly below ``docs/``."""
    return sorted(Path(config.docs_dir).glob("*.ipynb"))


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Give each notebook its place in the navigation, behind the pages of the first part."""
    start = next(iter(config.nav[0].values()))
    start += [f"docs/{path.stem}.md" for path in notebooks(config)]
    return config


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add a page for each notebook."""
    for path in notebooks(config):
        page = File.generated(config, f"docs/{path.stem}.md", content=as_markdown(path.read_text(encoding="utf-8")))
        page.dest_uri = f"{path.stem}.html"
        files.append(page)
    return files


def on_page_markdown(markdown: str, *, config: MkDocsConfig, **_: Any) -> str:
    """Lead links to a notebook to its page."""
    for path in notebooks(config):
        markdown = markdown.replace(f"{path.name})", f"{path.stem}.md)")
    return markdown


def as_markdown(text: str) -> str:
    """The cells of a notebook, in Markdown."""
    notebook = json.loads(text)
    return "\n\n".join(part for cell in notebook["cells"] for part in _cell(cell)) + "\n"


def _cell(cell: Mapping[str, Any]) -> Iterator[str]:
    source = _joined(cell["source"])
    if cell["cell_type"] == "markdown":
        yield source
    elif cell["cell_type"] == "code" and source:
        yield f"```python\n{source}\n```"
        for output in cell["outputs"]:
            yield from _output(output)


def _output(output: Mapping[str, Any]) -> Iterator[str]:
    if output["output_type"] == "stream":
        yield _text(_joined(output["text"]))
    elif output["output_type"] == "error":
        raise ValueError(f"the notebook ends in {output['ename']}: {output['evalue']}")
    else:
        data = output["data"]
        kind = next(kind for kind in _SHOWN if kind in data)
        yield _SHOW[kind](_joined(data[kind]))


def _text(text: str) -> str:
    return f'<pre class="output">{html.escape(text.rstrip())}</pre>'


def _picture(data: bytes, kind: str) -> str:
    source = f"data:{kind};base64,{base64.b64encode(data).decode()}"
    return f'<p class="output"><img alt="What the cell above draws" src="{source}"></p>'


def _joined(text: str | Iterable[str]) -> str:
    return text if isinstance(text, str) else "".join(text)


#: How an output of a kind is written.
_SHOW: Mapping[str, Any] = {
    "image/svg+xml": lambda data: _picture(data.encode(), "image/svg+xml"),
    "image/png": lambda data: _picture(base64.b64decode(data), "image/png"),
    "text/markdown": lambda data: data,
    "text/html": lambda data: f'<div class="output">{data.strip()}</div>',
    "text/plain": _text,
}
