"""The page in a real browser: what a reader does with it, by pointer, by keys, on paper and on a phone."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from placer.answers.report import Inputs, contents, page, told_apart
from placer.cli import main
from placer.problem.reading import read
from tests.browsers import COLOURS
from tests.report.scenes import HOSTILE, UNREADABLE, crowded, fleet, hostile, large, write
from tests.support import node, pod

WIDE = {"width": 1400, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
PHONE = {"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": True}

Open = Callable[..., Any]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pages and what they are made from; each is made once."""
    folder = tmp_path_factory.mktemp("pages")
    instance, named = write(folder, "fleet", fleet()), write(folder, "hostile", hostile())
    placement, compared = str(folder / "placement.json"), str(folder / "compared.json")
    assert main(["solve", instance, "--method", "greedy", "-o", placement, "--quiet"]) == 0
    assert main(["compare", instance, "--policies", "volcano,kube-default,greedy", "-o", compared, "--quiet"]) == 0
    assert main(["report", instance, "-o", str(folder / "as-is.html"), "--quiet"]) == 0
    taint = {"spec": {"taints": [{"key": "nvidia.com/gpu", "value": "", "effect": "NoSchedule"}]}}
    tainted = write(folder, "tainted", [{**node(name, cpu=8, gpu=4), **taint} for name in ("a-1", "a-2")])
    waits = [pod(f"p{index}", gpu=8, spec={"priority": 7}) for index in range(6)]
    for name in (tainted, write(folder, "many", [node("a", cpu=8, gpu=4), *waits])):
        assert main(["report", name, "-o", str(Path(name).with_suffix(".html")), "--quiet"]) == 0
    assert main(["report", instance, placement, compared, "-o", str(folder / "fleet.html"), "--quiet"]) == 0
    things, disturbs = crowded()
    full, plan = write(folder, "crowded", things), folder / "disturbs.json"
    plan.write_text(json.dumps(disturbs))
    assert main(["report", full, str(plan), "-o", str(folder / "crowded.html"), "--quiet"]) == 0
    inputs = told_apart([named])
    found = contents(read(*inputs.instance), inputs)
    found["nodes"]["name"][0] = UNREADABLE
    (folder / "hostile.html").write_text(page(found))
    return folder


@pytest.fixture
def opened(browser: Any, folder: Path) -> Iterator[Open]:
    """Open a page in some scheme and on some screen; at the end nothing may stand in the console."""
    browser.get_log("browser")
    browser.get_log("performance")

    def open_page(
        name: str = "fleet",
        scheme: str = "light",
        screen: dict[str, Any] = WIDE,
        media: str = "",
        address: str = "",
    ) -> Any:
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": features})
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
        browser.get("about:blank")  # another address in the same page would load nothing
        browser.get((folder / f"{name}.html").as_uri() + address)
        wait(browser, "performance.getEntriesByName('tables').length > 0")
        return browser

    yield open_page
    assert [entry["message"] for entry in browser.get_log("browser")] == []


def wait(browser: Any, condition: str) -> None:
    from selenium.webdriver.support.ui import WebDriverWait

    WebDriverWait(browser, 30).until(lambda _: browser.execute_script(f"return {condition}"), condition)


def text(browser: Any, selector: str) -> str:
    return str(browser.find_element("css selector", selector).text)


def rows(browser: Any, table: str) -> list[list[str]]:
    """Cells of the rows that a table shows."""
    script = "return [...document.querySelectorAll(arguments[0])].map(r => [...r.children].map(c => c.textContent))"
    return list(browser.execute_script(script, f"#{table}-table tbody tr"))


def named_rows(browser: Any, table: str) -> dict[str, dict[str, str]]:
    """The same by their first cell, and each by what stands above."""
    script = "return [...document.querySelectorAll(arguments[0])].map(each => each.textContent)"
    head = browser.execute_script(script, f"#{table}-table thead th")
    return {row[0]: dict(zip(head, row, strict=True)) for row in rows(browser, table)}


def press(browser: Any, *keys: str) -> None:
    from selenium.webdriver.common.action_chains import ActionChains

    ActionChains(browser).send_keys(*keys).perform()


def point(browser: Any, x: float, y: float, *, click: bool = False) -> None:
    """Move to a place of the picture, in pixels from its upper left corner."""
    from selenium.webdriver.common.action_chains import ActionChains

    browser.execute_script("document.getElementById('picture').scrollIntoView()")
    canvas = browser.find_element("css selector", "#canvas")
    size = canvas.size
    chain = ActionChains(browser).move_to_element_with_offset(canvas, x - size["width"] / 2, y - size["height"] / 2)
    (chain.click() if click else chain).perform()


def search(browser: Any, words: str) -> None:
    field = browser.find_element("css selector", "#search")
    field.clear()
    field.send_keys(words)


# ------------------------------------------------------------------------------------------ what a new reader asks


def test_where_is_x(opened: Open) -> None:
    browser = opened()
    search(browser, "default/x")
    press(browser, "\ue007")  # Enter takes the first
    details = text(browser, "#details")
    assert "PodGroup default/x" in details
    assert "3 placed now" in details
    assert "leaf-2, on 2 nodes" in details or "leaf-3, on 2 nodes" in details
    assert text(browser, "#trail").endswith(("leaf-2", "leaf-3"))


def test_why_does_y_wait(opened: Open) -> None:
    browser = opened()
    search(browser, "y")
    browser.find_element("xpath", "//div[@id='results']//a[.='default/y']").click()
    details = text(browser, "#details")
    assert "waits" in details
    assert "TopologyTooNarrow" in details
    assert "What to do" in details
    (row,) = [row for row in rows(browser, "groups") if row[0] == "default/y"]
    assert any(cell.startswith("TopologyTooNarrow: ") for cell in row)


def test_what_is_free_under_a_leaf(opened: Open) -> None:
    browser = opened()
    head = [each.text.split(" ↕")[0] for each in browser.find_elements("css selector", "#domains-table thead th")]
    free = {row[0]: int(row[head.index("Free gpu")]) for row in rows(browser, "domains")}
    assert free["leaf-1"] == 0
    assert sorted((free["leaf-2"], free["leaf-3"])) == [20, 32]
    search(browser, "leaf-3")
    press(browser, "\ue007")
    details = text(browser, "#details")
    assert f"nvidia.com/gpu 40 {32 - free['leaf-3']} {free['leaf-3']}" in details
    assert "Not free, because their nodes take no pods: gpu 8, " in details


def test_is_better_possible(opened: Open) -> None:
    browser = opened()
    browser.find_element("css selector", "#overall summary").click()
    assert text(browser, ".word") in ("OPTIMAL", "FEASIBLE")
    answers = {row[1]: row[3] for row in rows(browser, "values")}
    assert answers["placed pods"] == "no"
    assert set(answers.values()) <= {"no", "perhaps", "not known"}


def test_what_did_others_do_otherwise(opened: Open) -> None:
    browser = opened()
    policies = named_rows(browser, "policies")
    assert list(policies) == ["this placement", "volcano", "kube-default", "greedy"]
    assert policies["kube-default"]["Breaks rules"] == "C5 gang 1, C7 tier limit 2"
    assert policies["greedy"]["Breaks rules"] == policies["this placement"]["Breaks rules"] == "none"
    figures = ("Pods", "Groups", "GPUs", "Ready only there", "Ready only here")
    assert [policies["this placement"][each] for each in figures] == ["3", "1", "12", "", ""]
    assert [policies["greedy"][each] for each in figures] == ["3", "1", "12", "0", "0"]
    values = named_rows(browser, "compared")
    assert list(values)[:2] == ["admitted groups, nodes", "placed pods, nodes"]
    assert all(row["this placement"] == row["greedy"] for row in values.values())
    assert values["placed pods, nodes"]["Better is"] == "more"
    fates = named_rows(browser, "fates")
    assert fates["default/y"]["this placement"] == "waits"
    assert fates["default/y"]["kube-default"].startswith("4 pods in spine (tier 2), not ready")
    lines = browser.find_elements("css selector", "#policies-table .bound")
    assert len(lines) == 4


# ------------------------------------------------------------------------------------------------------- the picture


def test_a_domain_opens_at_a_click_and_closes_at_the_uppermost_band(opened: Open) -> None:
    browser = opened()
    point(browser, 20, 26 * 2 + 10, click=True)
    assert text(browser, "#trail") == "the cluster › spine › leaf-1"
    assert "HyperNode leaf-1" in text(browser, "#details")
    point(browser, 20, 10, click=True)
    assert text(browser, "#trail") == "the cluster › spine"


def test_pointing_at_a_node_tells_what_is_free_of_it(opened: Open) -> None:
    browser = opened()
    point(browser, 20, 26 * 3 + 40)
    assert text(browser, "#tip").startswith("n10\n100 % of gpu is taken\nfree: gpu 0, ")
    assert "default/runs" in text(browser, "#tip")
    point(browser, 20, 26 * 3 + 40, click=True)
    assert "default/runs-0" in text(browser, "#details")


def test_the_picture_by_keys(opened: Open) -> None:
    browser = opened()
    browser.execute_script("document.getElementById('canvas').focus()")
    spoken = []
    for key in ("\ue015", "\ue015", "\ue014", "\ue007", "\ue015", "\ue014", "\ue013", "\ue00c"):
        press(browser, key)  # down to spine, to leaf-1, along to leaf-2, open it, down, along, up, out
        spoken.append(str(browser.execute_script("return document.querySelector('.spoken').textContent")).split(";")[0])
    heads = [each.split(" (")[0].split(":")[0] for each in spoken]
    assert heads == ["spine", "leaf-1", "leaf-2", "leaf-2", "n20", "n21", "leaf-2", "spine"]


def test_before_and_after(opened: Open) -> None:
    browser = opened()
    column = [each.text.split(" ↕")[0] for each in browser.find_elements("css selector", "#nodes-table thead th")]

    def taken() -> int:
        return sum(8 - int(row[column.index("Free gpu")]) for row in rows(browser, "nodes"))

    drawn = picture(browser)
    assert taken() == 32 + 12
    browser.find_element("xpath", "//button[text()='Before']").click()
    assert taken() == 32
    assert picture(browser) != drawn
    assert pixels(browser, WARN) == 0  # nothing is moved here
    browser.find_element("xpath", "//button[text()='Changes']").click()
    assert taken() == 32 + 12
    assert picture(browser) != drawn


def test_what_is_evicted_and_moved_is_marked_and_told(opened: Open) -> None:
    browser = opened("crowded")
    assert named_rows(browser, "disturbed")["default/low-0"]["Fate"] == "is evicted"
    assert named_rows(browser, "disturbed")["default/half-b"]["To"] == "c"
    assert named_rows(browser, "groups")["default/low"]["State"] == "evicted"
    assert "PodGroup/default/low" in text(browser, "#disturbed")
    assert "evicted or lost" in text(browser, "#legend")
    marked = picture(browser)
    assert pixels(browser, BAD) > 50
    assert pixels(browser, WARN) > 50
    point(browser, 20, 26 + 40)
    assert "1 pod evicted" in text(browser, "#tip")
    browser.find_element("xpath", "//button[text()='Before']").click()
    assert picture(browser) != marked
    assert pixels(browser, BAD) > 1000
    point(browser, 20, 26 + 40, click=True)
    assert "default/low-0 (is evicted)" in text(browser, "#details")
    search(browser, "half-b")
    assert "on c, moved" in text(browser, "#results")
    search(browser, "low-0")
    assert "waits, evicted" in text(browser, "#results")


#: Colours of the page in the light: of what is evicted, and of what is moved.
BAD, WARN = (0xB3, 0x26, 0x1E), (0x7A, 0x4D, 0x00)


def pixels(browser: Any, colour: tuple[int, int, int]) -> int:
    """How many pixels of the picture have a colour."""
    script = """
        const drawn = document.getElementById('canvas'), copy = drawn.cloneNode();
        const pen = copy.getContext('2d', { willReadFrequently: true });
        pen.drawImage(drawn, 0, 0);
        const { data } = pen.getImageData(0, 0, copy.width, copy.height);
        const same = (at) => arguments[0].every((part, index) => data[at + index] === part);
        let count = 0;
        for (let at = 0; at < data.length; at += 4) count += same(at);
        return count;
    """
    return int(browser.execute_script(script, colour))


def picture(browser: Any) -> str:
    return str(browser.execute_script("return document.getElementById('canvas').toDataURL()"))


def choose_colours(browser: Any, mode: str) -> str:
    """Choose a meaning of the colours; what the legend says of it."""
    script = """
      const select = document.getElementById("colours");
      select.value = arguments[0];
      select.dispatchEvent(new Event("change"));
    """
    browser.execute_script(script, mode)
    return text(browser, "#legend")


def test_the_reader_chooses_the_meaning_of_the_colours(opened: Open) -> None:
    browser = opened()
    assert text(browser, "#legend") == "ran before\nnew\nfree\nwaits\ncordoned, not Ready or over-full"
    drawn = {picture(browser)}
    assert "75 %" in choose_colours(browser, "fill")
    drawn.add(picture(browser))
    assert "research" in choose_colours(browser, "queue")
    drawn.add(picture(browser))
    assert len(drawn) == 3


def test_groups_have_colours_in_an_opened_domain_alone(opened: Open) -> None:
    browser = opened()
    group = "return document.querySelector('#colours option[value=group]').disabled"
    assert browser.execute_script(group) is True
    point(browser, 20, 26 * 2 + 10, click=True)
    assert browser.execute_script(group) is False
    assert text(browser, "#legend").startswith("a colour for each group")
    browser.find_element("xpath", "//nav[@id='trail']//a[.='the cluster']").click()
    assert text(browser, "#legend").startswith("ran before")


def test_red_is_a_node_that_takes_no_pods_and_no_usual_taint(opened: Open) -> None:
    browser = opened("tainted")
    assert pixels(browser, BAD) == 0
    assert "cordoned" not in text(browser, "#legend")
    browser = opened()
    assert pixels(browser, BAD) > 50


def test_the_first_screen_has_the_answer_five_numbers_and_all_that_waits(opened: Open) -> None:
    browser = opened()
    assert text(browser, "#cluster") == "fleet"
    assert "from fleet.json" in text(browser, "#files")
    assert " UTC" in text(browser, "#files")
    assert text(browser, ".headline").startswith("1 of 2 groups that wait can start")
    tiles = [each.text.split("\n")[:2] for each in browser.find_elements("css selector", ".tiles > div")]
    assert tiles == [
        ["GPUs used", "44"],
        ["GPUs free", "44"],
        ["GPUs stranded", "16"],  # a cordoned node, and one without CPUs left
        ["GPUs waiting", "40"],
        ["Groups waiting", "1"],
    ]
    waits = text(browser, "#details")
    assert "Waiting: 1 group" in waits
    assert "default/y" in waits
    assert "5 pods · 40 GPUs" in waits
    assert "no domain has room" in waits
    browser.find_element("xpath", "//button[text()='Before']").click()
    assert "default/x" in text(browser, "#details")
    below = "return document.getElementById('groups').getBoundingClientRect().top"
    assert browser.execute_script(below) > browser.execute_script("return document.getElementById('canvas').offsetTop")


def test_a_group_that_would_fit_waits_for_no_time(opened: Open) -> None:
    waits = text(opened("as-is"), "#details")
    assert "it would fit by itself" in waits
    assert "in time" not in waits


def test_equal_reasons_stand_once(opened: Open) -> None:
    browser = opened("many")
    waits = text(browser, "#details")
    assert "Waiting: 6 groups" in waits
    assert waits.count("larger than any node") == 1
    assert "6 groups priority 7 · 6 pods" in waits.replace("\n", " ")


def test_an_address_leads_to_a_thing_and_back_goes_back(opened: Open) -> None:
    browser = opened("fleet", address="#group=default/x")
    assert "PodGroup default/x" in text(browser, "#details")
    point(browser, 20, 10, click=True)
    browser.find_element("xpath", "//nav[@id='trail']//a[.='the cluster']").click()
    search(browser, "n21")
    press(browser, "\ue007")
    assert browser.current_url.endswith("#node=n21")
    assert "Node n21" in text(browser, "#details")
    browser.back()
    browser.back()
    browser.back()
    wait(browser, "document.getElementById('details').textContent.includes('PodGroup default/x')")
    assert browser.current_url.endswith("#group=default/x")
    links = "return [...document.querySelectorAll('#groups-table tbody th a')].map(a => a.getAttribute('href'))"
    assert "#group=default/y" in browser.execute_script(links)


def test_no_back_tick_is_left_and_labels_are_short(opened: Open) -> None:
    browser = opened("fleet", address="#group=default/y")
    assert "`" not in browser.execute_script("return document.querySelector('main').textContent")
    assert browser.execute_script("return document.querySelectorAll('#details code').length") > 0


# -------------------------------------------------------------------------------------------------------- the tables


def test_a_table_is_sorted_by_keys(opened: Open) -> None:
    browser = opened()
    heads = [each.text.split(" ↕")[0] for each in browser.find_elements("css selector", "#groups-table thead th")]
    assert heads[:5] == ["Group", "State", "Queue", "GPUs", "Waiting"]
    button = "document.querySelectorAll('#groups-table thead button')[4]"
    browser.execute_script(f"{button}.focus()")
    assert browser.execute_script("return getComputedStyle(document.activeElement).outlineStyle") != "none"
    press(browser, "\ue007")
    state = "return document.querySelectorAll('#groups-table thead th')[4].ariaSort"
    assert browser.execute_script(state) == "ascending"
    press(browser, " ")
    assert browser.execute_script(state) == "descending"
    waiting = [int(row[4]) for row in rows(browser, "groups")]
    assert waiting == sorted(waiting, reverse=True)
    assert waiting[0] == 5


def test_a_table_is_filtered(opened: Open) -> None:
    browser = opened()
    browser.find_element("css selector", "#pods-filter").send_keys("X-")
    assert [row[0] for row in rows(browser, "pods")] == ["default/x-0", "default/x-1", "default/x-2"]
    assert text(browser, "#pods-table .status") == "3 rows (13 in all)"


def test_everything_has_a_name_for_those_who_hear_the_page(opened: Open) -> None:
    browser = opened()
    tree = browser.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    named = [
        node for node in tree if node.get("role", {}).get("value") in ("button", "searchbox", "link", "table", "region")
    ]
    assert len(named) > 50
    assert [node for node in named if not node.get("name", {}).get("value")] == []
    assert browser.execute_script(
        "return document.querySelectorAll('table:not(.small)').length"
    ) == browser.execute_script("return document.querySelectorAll('table > caption').length")


# ------------------------------------------------------------------------------------- nothing leaves, or gets in


@pytest.mark.parametrize("name", ["fleet", "as-is", "crowded", "hostile"])
def test_no_request_leaves(opened: Open, name: str) -> None:
    browser = opened(name)
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]
    assert asked == [browser.current_url]


def test_the_page_may_ask_for_nothing(opened: Open) -> None:
    browser = opened()
    script = """
      const done = arguments[0], refused = [];
      document.addEventListener("securitypolicyviolation", (event) => refused.push(event.effectiveDirective));
      fetch("https://example.org/").catch(() => 0);
      const image = document.createElement("img"); image.src = "https://example.org/x.png";
      document.body.append(image);
      const script = document.createElement("script");
      try { script.text = "window.hacked = 1"; } catch { refused.push("trusted types"); }
      try { document.body.innerHTML += "<i>"; } catch { refused.push("markup"); }
      setTimeout(() => done(refused), 200);
    """
    refused = browser.execute_async_script(script)
    assert {"connect-src", "img-src", "trusted types", "markup"} <= set(refused)
    assert len(browser.get_log("browser")) >= 2  # these refusals, which the console tells


def test_names_are_text_whatever_they_are(opened: Open) -> None:
    browser = opened("hostile")
    assert browser.execute_script("return window.hacked") is None
    assert browser.find_elements("css selector", "main img, main svg, main b, main style, main script") == []
    assert browser.execute_script("return document.querySelectorAll('script, style').length") == 3
    shown = {row[0] for table in ("nodes", "domains") for row in rows(browser, table)}
    for name in (*HOSTILE, UNREADABLE):
        seen = "".join(f"\\u{{{ord(letter):x}}}" if hides(letter) else letter for letter in name)
        assert seen in shown
        if name != UNREADABLE:  # the driver takes no half characters
            browser.execute_script(SEARCH, name)
            assert seen in browser.execute_script("return document.getElementById('results').textContent")
    assert browser.execute_script("return window.hacked") is None
    assert browser.execute_script("return document.documentElement.scrollWidth <= innerWidth")


SEARCH = """
  const field = document.getElementById("search");
  field.value = arguments[0];
  field.dispatchEvent(new Event("input"));
"""


def hides(letter: str) -> bool:
    """Whether a letter is not seen, or turns others round."""
    import unicodedata

    return unicodedata.category(letter) in ("Cc", "Cf", "Cs", "Zl", "Zp")


# --------------------------------------------------------------------------------------------- how it looks, and where

CONTRAST = (
    COLOURS
    + """
  const found = textsWithin(document.body);
  const root = getComputedStyle(document.documentElement);
  const ink = (name) => root.getPropertyValue(name);
  for (const under of ["--band", "--band-full", "--back", "--free"]) {
    found.push([ratio(ink("--text"), ink(under)), "canvas", under]);
  }
  return found;
"""
)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_have_contrast(opened: Open, scheme: str) -> None:
    browser = opened(scheme=scheme)
    search(browser, "x")
    found = browser.execute_script(CONTRAST)
    assert len(found) > 150
    assert [each for each in found if each[0] < 4.5] == []
    dark = browser.execute_script("return getComputedStyle(document.body).backgroundColor") != "rgb(255, 255, 255)"
    assert dark == (scheme == "dark")


@pytest.mark.parametrize("name", ["fleet", "crowded", "hostile"])
def test_on_a_phone_only_tables_go_beyond_the_screen(opened: Open, name: str) -> None:
    browser = opened(name, screen=PHONE)
    assert browser.execute_script("return document.documentElement.scrollWidth <= innerWidth")
    assert browser.execute_script("return document.getElementById('canvas').clientWidth") > 300


def test_on_paper_there_is_all_of_it(opened: Open) -> None:
    browser = opened(scheme="dark")
    browser.execute_script(
        """addEventListener("beforeprint", () => {
          window.printed = {
            rows: document.querySelectorAll("#pods-table tbody tr").length,
            back: getComputedStyle(document.body).backgroundColor,
            buttons: [...document.querySelectorAll(".tools button, form")].filter((b) => b.checkVisibility()).length,
          };
        });"""
    )
    printed = base64.b64decode(browser.execute_cdp_cmd("Page.printToPDF", {"preferCSSPageSize": True})["data"])
    assert printed.startswith(b"%PDF-")
    assert printed.count(b"/Type /Page\n") >= 3
    assert browser.execute_script("return window.printed.rows") == 13
    opened(scheme="dark", media="print")
    assert browser.execute_script("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    controls = ".tools button, form, .switches button, .switches select"
    shown = f"return [...document.querySelectorAll('{controls}')].filter((b) => b.checkVisibility())"
    assert browser.execute_script(shown) == []


# ------------------------------------------------------------------------------------------------------------- at size


def test_of_a_large_cluster_a_page_shows_parts(opened: Open, folder: Path) -> None:
    """5,000 nodes and 55,000 pods."""
    made = page(contents(large(5000, 55_000), Inputs([], None, None, [])))
    assert len(made) < 10 * 2**20
    (folder / "large.html").write_text(made)
    browser = opened("large")
    assert browser.execute_script("return document.querySelectorAll('#nodes-table tbody tr').length") == 20
    assert text(browser, "#nodes-table .status") == "1 to 20 of 5,000 rows"
    assert text(browser, "#pods-table .status") == "1 to 20 of 55,000 rows"
    browser.execute_script("document.querySelectorAll('#pods-table thead button')[0].click()")
    browser.execute_script("document.querySelectorAll('#pods-table thead button')[0].click()")
    assert rows(browser, "pods")[0][0] == "team-39/training-job-06839-worker-7"
    search(browser, "training-job-06839-worker-7")
    assert "Pods (1)" in text(browser, "#results")
    search(browser, "node-04999")
    press(browser, "\ue007")
    assert text(browser, "#trail") == "the cluster › core › spine-39 › leaf-624"
