"""The documentation site: it builds without a warning, its links lead somewhere, nothing is fetched, it can be read."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from docs.hooks.codes import CONDITIONS, EVENTS
from placer.base.codes import FINDINGS, REASONS
from placer.cli import program
from placer.rules import RULES
from tests.browsers import COLOURS

ROOT = Path(__file__).parents[2]
#: What stands for each kind of page.
KINDS = (
    "docs/index.md",
    "docs/concepts.md",
    "docs/first-hour.md",
    "docs/recipes/volcano.md",
    "docs/commands.md",
    "docs/policy.md",
    "docs/figures.md",
    "docs/notebook.md",
    "models/README.md",
    "models/codes.md",
    "models/benchmarks.md",
    "deploy/README.md",
    "api/api.md",
)
LAPTOP, PHONE = (1366, 768, False), (390, 844, True)


class Read(HTMLParser):
    """What a page refers to, what can be referred to in it, and what it loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.anchors |= {found[name] for name in ("id", "name") if name in found}
        if tag in ("a", "area") and "href" in found:
            self.links.append(found["href"])
        if tag == "link" and "canonical" not in found.get("rel", ""):
            self.loads.append(found.get("href", ""))
        self.loads += [found["src"]] if "src" in found else []


@cache
def read(page: Path) -> Read:
    return Read(page.read_text(encoding="utf-8"))


@cache
def target_of(folder: Path, path: str) -> Path | None:
    """The page or file that a link in a page of a folder leads to; None: there is none."""
    target = (folder / path).resolve()
    target = target / "index.html" if target.is_dir() else target
    return target if target.exists() else None


def pages(site: Path) -> list[Path]:
    return sorted(site.rglob("*.html"))


def page_of(site: Path, name: str) -> Path:
    """Where a page of the repository is in the site."""
    path = Path(name.removeprefix("docs/"))
    return site / (path.with_name("index.html") if path.stem == "README" else path.with_suffix(".html"))


def article(site: Path, name: str) -> str:
    text = page_of(site, name).read_text(encoding="utf-8")
    return text[text.index("<article") : text.index("</article>")]


def plain(html: str) -> str:
    return re.sub(r"<[^>]+>", "", html)


def test_every_link_and_anchor_leads_somewhere(site: Path) -> None:
    seen = 0
    for page in pages(site):
        for link in read(page).links + read(page).loads:
            parts = urlsplit(link)
            if parts.scheme or page.name == "404.html":
                continue
            target = target_of(page.parent, unquote(parts.path)) if parts.path else page
            assert target is not None, f"{page.relative_to(site)} links to {link}"
            assert target.is_relative_to(site), f"{page.relative_to(site)} links to {link}"
            if parts.fragment and target.suffix == ".html":
                known = read(target).anchors | {"", "__skip"}
                assert unquote(parts.fragment) in known, f"{page.relative_to(site)} links to {link}"
            seen += 1
    assert seen > 5_000


def test_nothing_is_fetched(site: Path) -> None:
    for page in pages(site):
        assert [each for each in read(page).loads if re.match(r"(https?:)?//", each)] == [], page
    for style in site.rglob("*.css"):
        assert not re.search(r"(url\(|@import)\s*['\"]?(https?:)?//", style.read_text(encoding="utf-8")), style


def test_every_page_of_the_repository_is_there(site: Path) -> None:
    found = {page.relative_to(site).as_posix() for page in pages(site)}
    for folder in ("models", "deploy", "instances"):
        for page in (ROOT / folder).rglob("*.md"):
            name = page.relative_to(ROOT).as_posix().replace("README.md", "index.md")
            assert name.replace(".md", ".html") in found
    assert {"readme.html", "CONTRIBUTING.html", "CHANGELOG.html"} <= found


def commands(parser: argparse.ArgumentParser, name: str = "placer") -> Iterator[tuple[str, argparse.ArgumentParser]]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for word, each in action.choices.items():
                yield f"{name} {word}", each
                yield from commands(each, f"{name} {word}")


def test_every_command_and_option_is_there(site: Path) -> None:
    text = article(site, "docs/commands.md")
    parts = re.split(r'<h[23] id="([^"]+)"', text)
    sections = dict(zip(parts[1::2], parts[2::2], strict=True))
    found = dict(commands(program.parser()))
    assert len(found) > 15
    for name, parser in found.items():
        section = sections[name.replace(" ", "-")]
        inner = any(isinstance(action, argparse._SubParsersAction) for action in parser._actions)
        for action in () if inner else parser._actions:
            if action.help != argparse.SUPPRESS and "--help" not in action.option_strings:
                assert all(f"<code>{option}" in section for option in action.option_strings), (name, action.dest)


def test_every_key_of_a_policy_is_there_with_its_meaning(site: Path) -> None:
    schema = json.loads((ROOT / "placer/schemas/policy.schema.json").read_text(encoding="utf-8"))
    text = article(site, "docs/policy.md").replace("<wbr>", "")
    told = dict(re.findall(r"<tr>\s*<td><code>([^<]+)</code></td>(.*?)</tr>", text, re.DOTALL))

    def keys(of: dict[str, Any], path: str = "") -> Iterator[str]:
        for name, key in of.get("properties", {}).items():
            yield f"{path}{name}"
            yield from keys(key, f"{path}{name}.")
            yield from keys(key.get("items", {}), f"{path}{name}[].")

    wanted = [*keys(schema["properties"]["spec"])]
    assert list(told) == wanted
    assert "disruption.protect[].selector.matchExpressions[].operator" in wanted
    for cells in told.values():
        assert len(plain(cells.split("<td>")[-1]).split()) > 2


def test_codes_and_rules_have_their_anchors(site: Path) -> None:
    codes = read(page_of(site, "models/codes.md")).anchors
    assert {code.lower() for catalogue in (REASONS, FINDINGS, CONDITIONS, EVENTS) for code in catalogue} <= codes
    rules = read(page_of(site, "models/README.md")).anchors
    assert all(f"{rule.lower()}-{check.__name__}" in rules for rule, check in RULES)


def test_formulas_are_drawn_by_the_browser_itself(site: Path) -> None:
    text = article(site, "models/README.md")
    source = (ROOT / "models" / "README.md").read_text(encoding="utf-8")
    assert text.count("<math") >= source.count("```math") + 100
    without = plain(re.sub(r"<(code|pre|math)\b.*?</\1>", "", text, flags=re.DOTALL))
    assert "$" not in without
    assert "\\" not in without
    assert "data-formula" not in text


def test_what_is_made_is_in_its_place(site: Path) -> None:
    for page in pages(site):
        assert "<!-- made:" not in page.read_text(encoding="utf-8"), page
    drawn = article(site, "docs/concepts.md")
    assert drawn.count("<svg") >= 6
    assert all(
        f">{word}<" in drawn for word in ("leaf-1, tier 1", "waiting: b-0, b-1, b-2, b-3", "large: refused", "decides")
    )
    for name in ("profile", "placed", "size", "gap"):
        assert "<svg" in (site / "figures" / f"{name}.svg").read_text(encoding="utf-8")


def test_docstrings_have_no_markup_of_another_language(site: Path) -> None:
    named = 0
    for page in (site / "api").glob("*.html"):
        text = re.sub(r"<pre\b.*?</pre>", "", article(site, f"api/{page.stem}.md"), flags=re.DOTALL)
        assert not re.search(r":(class|func|meth|mod|attr|data):", text), page.name
        assert "::\n" not in plain(text), page.name
        named += text.count("doc-function") + text.count("doc-class")
    assert named > 200


@pytest.fixture
def opened(browser: Any, site: Path) -> Iterator[Any]:
    """Opens pages from the folder; afterwards nothing was complained of and nothing asked for."""
    browser.get("about:blank")
    browser.get_log("browser")
    browser.get_log("performance")

    def work(name: str, scheme: str = "light", screen: tuple[int, int, bool] = LAPTOP) -> Any:
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "screen", "features": features})
        size = {"width": screen[0], "height": screen[1], "deviceScaleFactor": 1, "mobile": screen[2]}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        browser.get(page_of(site, name).as_uri())
        return browser

    yield work
    assert [entry["message"] for entry in browser.get_log("browser")] == []
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [each["params"]["request"]["url"] for each in events if each["method"] == "Network.requestWillBeSent"]
    assert asked
    assert [url for url in asked if not url.startswith(("file:", "data:", "about:"))] == []


def wait(browser: Any, condition: str) -> None:
    from selenium.webdriver.support.ui import WebDriverWait

    WebDriverWait(browser, 30).until(lambda _: browser.execute_script(f"return {condition}"), condition)


@pytest.mark.exhaustive
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_is_wider_than_its_screen(opened: Any, scheme: str) -> None:
    for screen in (LAPTOP, PHONE):
        for name in KINDS:
            browser = opened(name, scheme, screen)
            assert browser.execute_script("return document.documentElement.scrollWidth <= innerWidth"), (name, screen)
            used = browser.execute_script("return document.body.getAttribute('data-md-color-scheme')")
            assert used == {"light": "default", "dark": "slate"}[scheme]


#: Contrast of texts of an article, and of those of pictures on the boxes that they stand in.
CONTRAST = (
    COLOURS
    + """
  const found = textsWithin(document.querySelector("article"));
  for (const text of document.querySelectorAll("svg text.pod, svg text.small")) {
    const place = text.getBBox();
    const [x, y] = [place.x + place.width / 2, place.y + place.height / 2];
    const boxes = [...text.ownerSVGElement.querySelectorAll("rect")].filter((box) => {
      const within = box.getBBox();
      return within.x <= x && x <= within.x + within.width && within.y <= y && y <= within.y + within.height;
    });
    const under = boxes.length ? getComputedStyle(boxes.at(-1)).fill : back(text.ownerSVGElement.parentElement);
    found.push([ratio(getComputedStyle(text).fill, under), "text", text.textContent]);
  }
  return found;
"""
)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_have_contrast(opened: Any, scheme: str) -> None:
    seen = 0
    for name in ("docs/concepts.md", "docs/first-hour.md", "docs/policy.md", "api/api.md"):
        found = opened(name, scheme).execute_script(CONTRAST)
        seen += len(found)
        assert [each for each in found if each[0] < 4.5] == [], name
    assert seen > 500


@pytest.mark.parametrize(
    ("asked", "page"),
    [
        ("TopologyTooNarrow", "codes.html"),
        ("why is my pod pending", "questions.html"),
        ("kueue", "kueue.html"),
        ("karpenter", "autoscalers.html"),
        ("LWS", "support.html"),
    ],
)
def test_a_search_from_a_folder_finds_pages_before_the_api(opened: Any, asked: str, page: str) -> None:
    from selenium.webdriver.common.keys import Keys

    browser = opened("docs/index.md")
    field = browser.find_element("css selector", ".md-search__input")
    browser.execute_script("arguments[0].focus()", field)
    field.send_keys(asked)
    wait(browser, "document.querySelectorAll('.md-search-result__item a').length > 0")
    script = "return [...document.querySelectorAll('.md-search-result__item > a')].map((a) => a.href)"
    found = browser.execute_script(script)
    field.send_keys(Keys.ESCAPE)
    assert any(f"/{page}" in link for link in found[:3]), found[:5]
    assert not any("/api/" in link for link in found[:3]), found[:5]


def test_light_and_dark_are_chosen_by_hand_too(opened: Any) -> None:
    browser = opened("docs/concepts.md")
    scheme = "return document.body.getAttribute('data-md-color-scheme')"
    seen = []
    for _ in range(3):
        button = next(
            each for each in browser.find_elements("css selector", "label[for^=__palette]") if each.is_displayed()
        )
        button.click()
        seen.append(browser.execute_script(scheme))
    assert set(seen) == {"default", "slate"}
    browser.execute_script("localStorage.clear()")


def test_a_notebook_becomes_a_page(site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "docs" / "hooks")
    import notebook

    data = {"text/plain": ["<Result>"], "text/html": ["<b>12</b>\n", "pods"]}
    svg = {"image/svg+xml": "<svg></svg>", "text/plain": "a figure"}
    cells = [
        {"cell_type": "markdown", "source": ["# A notebook\n", "It [leads](index.md)."]},
        {
            "cell_type": "code",
            "source": "print(1)\n\nresult",
            "outputs": [
                {"output_type": "stream", "text": ["1 < 2\n", "\n", "3\n"]},
                {"output_type": "execute_result", "data": data},
                {"output_type": "display_data", "data": svg},
            ],
        },
        {"cell_type": "code", "source": "", "outputs": []},
    ]
    text = notebook.as_markdown(json.dumps({"cells": cells}))
    assert text.startswith("# A notebook\nIt [leads](index.md).\n\n```python\nprint(1)\n\nresult\n```\n\n<pre")
    assert "1 &lt; 2" in text
    assert '<div class="output"><b>12</b>\npods</div>' in text
    assert 'src="data:image/svg+xml;base64,' in text
    assert "&lt;Result>" not in text
    cells[1]["outputs"] = [{"output_type": "error", "ename": "KeyError", "evalue": "x"}]
    with pytest.raises(ValueError, match="the notebook ends in KeyError: x"):
        notebook.as_markdown(json.dumps({"cells": cells}))
