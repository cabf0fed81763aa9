"""Formulas of pages as MathML, which browsers draw by themselves: ``$...$`` and blocks of the language ``math``."""

from __future__ import annotations

import re
from typing import Any

from latex2mathml.converter import convert
from mkdocs.structure.pages import Page

_CODE = r"^```(?!math\n).*?^```|``.+?``|`[^`\n]+`"
_BLOCK = r"^```math\n(?P<block>.*?)^```$"
_INLINE = r"(?<![\w\\$])\$(?!\s)(?P<inline>[^$\n`]+?)(?<!\s)\$(?!\w)"
#: What may be a formula, and code, in which nothing is one.
_FORMULA = re.compile(f"{_BLOCK}|{_CODE}|{_INLINE}", re.DOTALL | re.MULTILINE)
#: What browsers draw better otherwise: a prime stands beside its letter, as high as fonts have it; top, infinity and
#: the empty set are no operators with room around them; arrows and the difference of sets are.
_BETTER = (
    (
        re.compile(r"<msup>(<mi>[^<]+</mi>)<mi>&#x02032;</mi></msup>"),
        r'<mrow>\1<mo lspace="0" rspace="0">&#x02032;</mo></mrow>',
    ),
    (
        re.compile(
            r"<msubsup>(<mi>[^<]+</mi>)(<mi>[^<]+</mi>|<mrow>(?:<m[in]>[^<]+</m[in]>)+</mrow>)<mi>&#x02032;</mi></msubsup>"
        ),
        r'<msub><mrow>\1<mo lspace="0" rspace="0">&#x02032;</mo></mrow>\2</msub>',
    ),
    (re.compile(r"<mo>(&#x0(?:22A4|221E|2205);)</mo>"), r'<mi mathvariant="normal">\1</mi>'),
    (re.compile(r"<mi>(&#x0(?:27FA|27F9|29F5);)</mi>"), r'<mo lspace="0.28em" rspace="0.28em">\1</mo>'),
)
_PLACE = re.compile(r'<(span|div) data-formula="(\d+)"></\1>')


def on_page_markdown(markdown: str, *, page: Page, **_: Any) -> str:
    """Put an empty element where a formula is: Markdown would read its characters as its own."""
    found: list[str] = []

    def taken_out(match: re.Match[str]) -> str:
        block, inline = match.group("block"), match.group("inline")
        if block is None and inline is None:
            return match.group()
        found.append(_mathml(block or inline, "block" if block else "inline"))
        element = "div" if block else "span"
        return f'<{element} data-formula="{len(found) - 1}"></{element}>'

    text = _FORMULA.sub(taken_out, markdown)
    page.meta["formulas"] = found
    return text


def on_page_content(html: str, *, page: Page, **_: Any) -> str:
    """Put the formulas into their places."""
    found = page.meta["formulas"]
    element = {"div": '<div class="formula" tabindex="0">{}</div>', "span": "{}"}
    return _PLACE.sub(lambda match: element[match[1]].format(found[int(match[2])]), html)


def _mathml(formula: str, display: str) -> str:
    """Translate a formula; one that is not understood whole is an error and not half a formula."""
    grown = re.sub(r"\\(?:B|b)igg?(l|r)\b", lambda match: {"l": r"\left", "r": r"\right"}[match[1]], formula)
    html = convert(grown, display=display)
    for pattern, better in _BETTER:
        html = pattern.sub(better, html)
    left = re.findall(r"\\[a-zA-Z]+", html)
    if left:
        raise ValueError(f"formula {formula!r}: not understood: {', '.join(left)}")
    return html
