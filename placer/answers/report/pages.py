"""The page: data, style and script in one HTML file that asks nothing of any network.

Its Content-Security-Policy allows ``static/``'s style and script by their hashes and nothing else.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from placer.answers.report.palette import declarations

#: Files of ``static/`` that make the script, in the order in which they are put together.
SCRIPTS = (
    "data.js",
    "addresses.js",
    "elements.js",
    "tables.js",
    "colours.js",
    "picture.js",
    "pointing.js",
    "details.js",
    "waiting.js",
    "sections.js",
    "main.js",
)

#: Characters that mean something to an HTML parser. All others beyond ASCII, U+2028 and U+2029 too, json escapes.
_ESCAPES = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})


def page(contents: Mapping[str, Any]) -> str:
    """Make the page, ASCII; names get into it only as JSON."""
    script = '"use strict";\n(() => {\n' + "\n".join(_static(name) for name in SCRIPTS) + "})();\n"
    style = _palette() + _static("page.css")
    policy = "; ".join(
        (
            "default-src 'none'",
            f"script-src '{_hash(script)}'",
            f"style-src '{_hash(style)}'",
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        )
    )
    parts = {"policy": policy, "style": style, "data": in_element(contents), "script": script}
    pieces = re.split(r"\{\{(\w+)\}\}", _static("page.html"))  # once: a name in the data may be written like a place
    return "".join(parts[piece] if index % 2 else piece for index, piece in enumerate(pieces))


def write_page(contents: Mapping[str, Any], target: Path) -> None:
    """Write the page whole or not at all, since a browser may load it at any time; :class:`OSError` if it cannot be."""
    if target.exists() and not target.is_file():  # a pipe, say
        target.write_text(page(contents), encoding="utf-8")
        return
    half = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        half.write_text(page(contents), encoding="utf-8")
        half.replace(target)
    finally:
        half.unlink(missing_ok=True)


def in_element(value: Any) -> str:
    r"""JSON in which no HTML parser finds anything.

    Examples
    --------
    >>> in_element({"name": "</script>"})
    '{"name":"\\u003c/script\\u003e"}'
    """
    return json.dumps(value, separators=(",", ":")).translate(_ESCAPES)


def _static(name: str) -> str:
    return (files("placer") / "answers" / "report" / "static" / name).read_text(encoding="utf-8")


def _palette() -> str:
    """Light unless the reader's system is dark; paper is always light."""
    light, dark = (f":root {{ {declarations(dark=each)} }}" for each in (False, True))
    return f"{light}\n@media screen and (prefers-color-scheme: dark) {{ {dark} }}\n"


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
