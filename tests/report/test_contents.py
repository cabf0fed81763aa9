"""What stands in the page is what verify, score and the instance say; files are told apart by what is in them."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import time
from collections.abc import Iterator
from html.parser import HTMLParser
from itertools import combinations, permutations
from pathlib import Path
from typing import Any

import pytest

from placer.answers.report import contents, page, told_apart
from placer.answers.report.answers import answer_of
from placer.answers.report.inventory import Inventory
from placer.answers.report.pages import SCRIPTS, in_element
from placer.answers.report.palette import PALETTE
from placer.base.deadline import NEVER, Deadline
from placer.base.errors import BadInstance, UsageError
from placer.cli import main
from placer.kube.manifests import Text
from placer.problem import Instance
from placer.problem.stranding import stranded
from tests.report.scenes import HOSTILE, UNREADABLE, crowded, fleet, write
from tests.support import instance_of, node, pod

STATIC = Path(__file__).parent.parent.parent / "placer" / "answers" / "report" / "static"
Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reports")
    write(folder, "fleet", fleet())
    assert (
        main(["solve", str(folder / "fleet.json"), "--method", "greedy", "-o", str(folder / "placed.json"), "--quiet"])
        == 0
    )
    return folder


def gather(*paths: Path | str, deadline: Deadline = NEVER) -> dict[str, Any]:
    from placer.problem.reading import read

    inputs = told_apart([str(path) for path in paths])
    return contents(read(*inputs.instance), inputs, deadline=deadline)


def bindings(folder: Path, name: str, **nodes: str) -> Path:
    path = folder / f"{name}.json"
    items = [
        {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"namespace": "default", "name": pod.replace("_", "-")},
            "target": {"apiVersion": "v1", "kind": "Node", "name": on},
        }
        for pod, on in nodes.items()
    ]
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return path


def group(found: dict[str, Any], name: str) -> dict[str, Any]:
    index = found["groups"]["name"].index(name)
    return {key: column[index] for key, column in found["groups"].items()}


# ------------------------------------------------------------------------------------------------------------ the data


def test_reasons_that_are_not_found_by_the_limit_are_not_decided(folder: Path, capsys: Capture) -> None:
    def codes(deadline: Deadline) -> set[str]:
        found = gather(folder / "fleet.json", deadline=deadline)["groups"]["code"]
        return set(found) - {None}

    assert codes(Deadline(time.monotonic())) == {"NotDecided"}
    assert codes(NEVER) - {"NotDecided"}
    assert main(["report", str(folder / "fleet.json"), "--time-limit", "-1", "-o", str(folder / "late.html")]) == 2
    assert "time limit: found -1.0" in capsys.readouterr().err


def test_a_placement_of_placer_brings_its_bounds_and_reasons(folder: Path) -> None:
    found = gather(folder / "fleet.json", folder / "placed.json")
    said = json.loads((folder / "placed.json").read_text())
    assert found["verdict"]["word"] == said["verdict"]
    assert [value["best"] for value in found["values"]][:2] == [True, True]
    (reason,) = [each["reason"] for each in said["groups"] if each["name"] == "y"]
    assert (group(found, "y")["code"], group(found, "y")["message"]) == (reason["code"], reason["message"])
    assert reason["code"] in found["codes"]
    assert group(found, "x")["new"] == 3
    assert group(found, "runs") | {"before": 4, "new": 0, "tier": 1, "domain": "leaf-1"} == group(found, "runs")


def test_amounts_are_those_of_the_instance(folder: Path) -> None:
    found = gather(folder / "fleet.json", folder / "placed.json")
    gpu = [each["name"] for each in found["resources"]].index("nvidia.com/gpu")

    def taken(when: str) -> int:
        return sum(found["amounts"][vector][gpu] for vector in found["nodes"][when])

    assert (taken("before"), taken("after")) == (32, 44)
    assert sum(found["amounts"][vector][gpu] for vector in found["nodes"]["allocatable"]) == 13 * 8
    moved = [b != a for b, a in zip(found["pods"]["before"], found["pods"]["after"], strict=True)]
    assert sum(moved) == 3
    (queue,) = found["queues"]
    assert (queue["before"]["nvidia.com/gpu"], queue["after"]["nvidia.com/gpu"], queue["waiting"]) == (32, 44, 5)


def test_without_a_placement_groups_are_told_why_they_wait_by_themselves(folder: Path) -> None:
    found = gather(folder / "fleet.json")
    assert found["verdict"]["word"] == "AS IS"
    assert group(found, "y")["code"] == "TopologyTooNarrow"
    assert "decided upon" in group(found, "x")["message"]
    assert set(found["codes"]) == {"TopologyTooNarrow"}
    assert found["pods"]["before"] == found["pods"]["after"]


def test_bindings_of_others_are_judged(folder: Path) -> None:
    good = gather(folder / "fleet.json", bindings(folder, "good", x_0="n21", x_1="n22", x_2="n23"))
    assert good["verdict"]["word"] == "VALID"
    assert {value["best"] for value in good["values"]} == {None}
    assert group(good, "y")["code"] == "TopologyTooNarrow"
    wide = gather(folder / "fleet.json", bindings(folder, "wide", x_0="n21", x_1="n22", x_2="n30"))
    assert wide["verdict"]["word"] == "INVALID"
    assert [each["rule"] for each in wide["violations"]] == ["C7"]


def test_what_is_evicted_and_moved_is_told_as_such(folder: Path) -> None:
    things, placement = crowded()
    (folder / "disturbs.json").write_text(json.dumps(placement))
    found = gather(write(folder, "crowded", things), folder / "disturbs.json")
    assert found["violations"] == []
    assert found["verdict"]["word"] == "VALID"
    pods = found["disturbed"]["pods"]
    names = [found["pods"]["name"][index] for index in pods["pod"]]
    fates = dict(zip(names, zip(pods["what"], pods["unit"], pods["step"], strict=True), strict=True))
    assert fates == {
        "low-0": ("evicted", "PodGroup/default/low", 2),
        "half-b": ("moved", "Pod/default/half-b", 1),
    }
    assert found["disturbed"]["lines"][0] == "Evict 1 gang:"
    nodes = [*found["nodes"]["name"], None]
    before, after = (
        {pod: nodes[on] for pod, on in zip(found["pods"]["name"], found["pods"][when], strict=True)}
        for when in ("before", "after")
    )
    assert before == {"low-0": "a", "half-b": "b", "half-c": "c", "high-0": None, "high-1": None}
    assert after == {"low-0": None, "half-b": "c", "half-c": "c", "high-0": "a", "high-1": "b"}
    gpu = [each["name"] for each in found["resources"]].index("nvidia.com/gpu")
    held = [[found["amounts"][vector][gpu] for vector in found["nodes"][when]] for when in ("before", "after")]
    assert held == [[8, 4, 4], [8, 8, 8]]
    low = group(found, "low")
    assert (low["before"], low["new"], low["moved"], low["evicted"], low["waiting"]) == (1, 0, 0, 1, 1)
    half = group(found, "half-b")
    assert (half["before"], half["new"], half["moved"], half["evicted"], half["waiting"]) == (1, 0, 1, 0, 0)


def test_the_headline_is_the_answer_itself(folder: Path) -> None:
    def said(*paths: Path | str) -> str:
        return str(gather(*paths)["headline"])

    assert said(folder / "fleet.json") == "2 groups wait: 8 pods that ask for 52 GPUs. Nothing is decided yet."
    placed = said(folder / "fleet.json", folder / "placed.json")
    assert placed.startswith("1 of 2 groups that wait can start: 3 of 8 pods have a place.")
    wide = bindings(folder, "broken", x_0="n21", x_1="n22", x_2="n30")
    assert said(folder / "fleet.json", wide) == "The placement breaks rules: 1 violation (C7 tier limit 1)."
    assert said(write(folder, "empty", [node("a")])) == "No pod waits."


def test_the_headline_of_a_plan_is_its_gain_its_price_and_its_proof(folder: Path) -> None:
    things, placement = crowded()
    instance, plan = write(folder, "crowded", things), folder / "plan.json"
    plan.write_text(json.dumps(placement))
    assert gather(instance, plan)["headline"] == (
        "default/high-0 can start: 1 pod on a. default/high-1 can start: 1 pod on b. "
        "For this 1 gang is evicted and 1 single pod is moved. Not proved: less might do."
    )
    repair = {"apiVersion": "placer.dev/v1alpha1", "kind": "Placement", "lost": ["b"]}
    plan.write_text(json.dumps(repair | {"bindings": [{"namespace": "default", "pod": "half-b", "node": "c"}]}))
    assert gather(instance, plan)["headline"] == (
        "1 node lost, b: 1 pod of 1 single pod ran there. Placed again: 1 of 1 pod."
    )


def test_groups_have_an_age_and_a_reason_in_few_words(folder: Path) -> None:
    found = gather(folder / "fleet.json")
    assert group(found, "y")["words"] == "no domain has room"
    assert group(found, "y")["created"] is None
    made = {"metadata": {"creationTimestamp": "2026-11-27T14:00:00Z"}}
    dated = write(folder, "dated", [node("a"), pod("p", **made)])
    assert group(gather(dated), "p")["created"] == 1_795_788_000


def test_what_ran_on_a_lost_node_is_told_as_such(folder: Path) -> None:
    things, _ = crowded()
    placement = {"apiVersion": "placer.dev/v1alpha1", "kind": "Placement", "lost": ["b"]}
    placement["bindings"] = [{"namespace": "default", "pod": "half-b", "node": "c"}]
    (folder / "repairs.json").write_text(json.dumps(placement))
    found = gather(write(folder, "crowded", things), folder / "repairs.json")
    assert found["violations"] == []
    assert found["disturbed"]["pods"]["what"] == ["lost"]
    assert found["disturbed"]["lines"][0] == "1 node lost, b: 1 pod of 1 single pod ran there."
    place = found["pods"]["name"].index("half-b")
    assert [found["nodes"]["name"][found["pods"][when][place]] for when in ("before", "after")] == ["b", "c"]
    assert (group(found, "half-b")["before"], group(found, "half-b")["new"]) == (1, 1)


def test_a_placement_of_other_input_proves_nothing_here(folder: Path) -> None:
    other = write(folder, "other", [*fleet(), node("n99")])
    found = gather(other, folder / "placed.json")
    assert "PlacementOfOtherInput" in [each["code"] for each in found["findings"]]
    assert {value["best"] for value in found["values"]} == {None}
    assert found["verdict"]["word"] == "VALID"


def test_a_bound_counts_only_beside_the_value_it_was_stated_for(folder: Path) -> None:
    said = json.loads((folder / "placed.json").read_text())
    said["objective"][0]["value"] += 1
    (folder / "false.json").write_text(json.dumps(said))
    found = gather(folder / "fleet.json", folder / "false.json")
    assert found["values"][0]["best"] is None
    assert found["values"][1]["best"] is True


def test_the_same_input_gives_the_same_page(folder: Path) -> None:
    paths = folder / "fleet.json", folder / "placed.json"
    assert page(gather(*paths)) == page(gather(*paths))


def test_regions_and_zones_stand_in_for_a_tree() -> None:
    from placer.answers.report.inventory import DomainColumns

    labels = [("r1", "z1"), ("r1", "z2"), ("r2", "z1"), ("r2", "z3"), ("", "")]
    nodes = [
        node(
            f"n{index}",
            labels={
                f"topology.kubernetes.io/{key}": value for key, value in (("region", region), ("zone", zone)) if value
            },
        )
        for index, (region, zone) in enumerate(labels)
    ]
    domains = DomainColumns.of(instance_of(*nodes))
    assert domains.names == ["r1", "r1/z1", "z2", "r2", "r2/z1", "z3"]
    assert domains.parents == [-1, 0, 0, -1, 3, 3]
    assert domains.of_node == {"n0": 1, "n1": 2, "n2": 4, "n3": 5}
    assert DomainColumns.of(instance_of(node("a"), node("b"))).names == []


# ---------------------------------------------------------------------------------------------------- what is stranded


def of(*docs: Any) -> dict[tuple[str, str], tuple[int, tuple[str, ...]]]:
    instance: Instance = instance_of(*docs)
    found = stranded(instance, instance.held)
    assert found is not None
    return {(each.resource, each.reason): (each.amount, each.nodes) for each in found}


def test_what_is_stranded_is_not_known_where_time_is_over() -> None:
    """One tenant's thousand selectors, each tried on each node, would hold the page up."""
    instance = instance_of(node("a", cpu=8), pod("p", cpu=9))
    assert stranded(instance, instance.held, Deadline(0.0)) is None


def test_one_pod_does_not_make_thousands_of_columns() -> None:
    asked = {f"example.com/r{number}": 1 for number in range(200)}
    names = Inventory(answer_of(instance_of(node("a", cpu=8), pod("many", cpu=1, **asked)), None)).resources
    assert "cpu" in names
    assert 0 < sum(name.startswith("example.com/") for name in names) < 40


def test_nothing_is_stranded_where_a_pod_fits() -> None:
    assert of(node("a", cpu=8, gpu=4), pod("p", gpu=1, cpu=2)) == {}


def test_free_gpus_without_cpu_beside_them_are_stranded() -> None:
    found = of(node("a", cpu=8, gpu=4), pod("hog", node="a", cpu=7), pod("p", gpu=1, cpu=2), pod("q", gpu=2, cpu=4))
    assert found == {
        ("nvidia.com/gpu", "not enough cpu next to it: the smallest pods ask for 2 of cpu"): (4, ("a",)),
        ("cpu", "too little in one piece: the smallest pods ask for 2"): (1000, ("a",)),
    }


def test_less_than_the_smallest_pod_is_stranded() -> None:
    found = of(node("a", gpu=4), pod("r", node="a", gpu=3), pod("p", gpu=2), pod("q", gpu=4))
    assert found == {("nvidia.com/gpu", "too little in one piece: the smallest pods ask for 2"): (1, ("a",))}


def test_what_is_free_on_a_node_that_takes_no_pods_is_stranded() -> None:
    cordoned = {**node("a", gpu=4), "spec": {"unschedulable": True}}
    assert of(cordoned, pod("p", gpu=1)) == {("nvidia.com/gpu", "node is unschedulable"): (4, ("a",))}


# -------------------------------------------------------------------------------------------------- files told apart


def test_files_are_told_apart_in_any_order(folder: Path) -> None:
    (folder / "rows.json").write_text(json.dumps([{"policy": "volcano", "groups": []}]))
    wide = bindings(folder, "some", x_0="n20")
    for paths in permutations(str(folder / name) for name in ("rows.json", "some.json", "fleet.json")):
        inputs = told_apart(paths)
        assert [text.name for text in inputs.instance] == [str(folder / "fleet.json")]
        assert inputs.placement is not None
        assert inputs.placement.name == str(wide)
        assert [row.policy for row in inputs.rows] == ["volcano"]


def test_what_cannot_be_told_is_refused(folder: Path) -> None:
    placed, instance = str(folder / "placed.json"), str(folder / "fleet.json")
    with pytest.raises(UsageError, match="found no INSTANCE"):
        told_apart([placed])
    with pytest.raises(UsageError, match="found 2 placements"):
        told_apart([instance, placed, placed])
    (folder / "bad.json").write_text('[{"policy": 3}]')
    with pytest.raises(BadInstance, match=r"Expected `str`, got `int` - at `\$\[0\]\.policy`"):
        told_apart([instance, str(folder / "bad.json")])
    (folder / "none.json").write_text("[]")
    with pytest.raises(BadInstance, match="an empty list"):
        told_apart([instance, str(folder / "none.json")])


def test_an_instance_that_only_speaks_of_placements_is_one(folder: Path) -> None:
    odd = write(folder, "odd", [node("placer.dev-Placement"), pod("Binding", node="placer.dev-Placement")])
    assert told_apart([odd]).placement is None


# ------------------------------------------------------------------------------------------------------- the command


def test_the_page_goes_where_it_is_asked_to(folder: Path, capsys: Capture) -> None:
    instance = str(folder / "fleet.json")
    assert main(["report", instance, "--quiet", "-o", "-"]) == 0
    assert capsys.readouterr().out.startswith("<!doctype html>")
    assert main(["report", instance, "-o", str(folder / "page.html"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["verdict"]["word"] == "AS IS"
    assert (folder / "page.html").read_text().startswith("<!doctype html>")
    assert main(["report", instance, "-o", str(folder / "page.pdf")]) == 2
    assert "expected one of .html" in capsys.readouterr().err


def test_findings_are_errors_where_asked(folder: Path, capsys: Capture) -> None:
    odd = write(folder, "finding", [*fleet(), pod("p", node="nowhere")])
    assert main(["report", odd, "--strict", "--quiet", "-o", str(folder / "strict.html")]) == 3
    assert "UnknownReference" in capsys.readouterr().err
    assert not (folder / "strict.html").exists()
    assert main(["report", odd, "--quiet", "-o", str(folder / "strict.html")]) == 0


def test_without_a_name_the_page_is_report_html_and_its_path_is_printed(
    folder: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda url: not opened.append(url))
    assert main(["report", str(folder / "fleet.json"), "--open"]) == 0
    assert capsys.readouterr().out == "report.html\n"
    assert (tmp_path / "report.html").read_text().startswith("<!doctype html>")
    assert opened == [(tmp_path / "report.html").as_uri()]
    assert main(["report", str(folder / "fleet.json"), "--open", "-o", "-"]) == 2
    assert "--open: found no file to write" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_a_page_is_written_again_and_again_until_an_interrupt(
    folder: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    instance, target = tmp_path / "now.json", tmp_path / "page.html"
    instance.write_text((folder / "fleet.json").read_text())
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 1:
            instance.write_text("{")  # half written: the page is as before
        elif len(waits) == 2:
            instance.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [node("other")]}))
        else:
            raise KeyboardInterrupt

    monkeypatch.setattr("time.sleep", wait)
    assert main(["report", str(instance), "-o", str(target), "--every", "1m", "--quiet"]) == 0
    assert waits == [60.0] * 3
    assert "the page is as before" in capsys.readouterr().err
    assert '"every":60.0' in target.read_text()
    assert '"name":["other"]' in target.read_text()
    assert main(["report", str(instance), "--every", "10ms"]) == 2
    assert "expected at least 1 s" in capsys.readouterr().err


def test_the_page_says_which_cluster_and_when(folder: Path, capsys: Capture) -> None:
    os.utime(folder / "fleet.json", (1_700_000_000, 1_700_000_000))
    found = gather(folder / "fleet.json")
    assert (found["cluster"], found["moment"], found["live"]) == ("fleet", 1_700_000_000, False)
    assert main(["report", str(folder / "fleet.json"), "--json", "--cluster-name", "west"]) == 0
    assert json.loads(capsys.readouterr().out)["cluster"] == "west"
    inputs = told_apart([Text("-", (folder / "fleet.json").read_bytes())])
    assert inputs.moment is None


# ----------------------------------------------------------------------------------------------- the text of the page


class Elements(HTMLParser):
    """Scripts, styles and policy of a page, as a parser of HTML finds them."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None], str]] = []
        self.policy = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("script", "style"):
            self.found.append((tag, dict(attrs), ""))
        if tag == "meta" and dict(attrs).get("http-equiv") == "Content-Security-Policy":
            self.policy = dict(attrs)["content"] or ""

    def handle_data(self, data: str) -> None:
        if self.found and not self.found[-1][2]:
            tag, attributes, _ = self.found[-1]
            self.found[-1] = tag, attributes, data


def test_the_policy_allows_the_pages_own_style_and_script_alone(folder: Path) -> None:
    parser = Elements()
    parser.feed(page(gather(folder / "fleet.json")))
    (_, _, style), (_, data, _), (_, _, script) = parser.found
    assert data["type"] == "application/json"
    for name, text in (("script", script), ("style", style)):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{name}-src 'sha256-{digest}';" in parser.policy
    assert parser.policy.startswith("default-src 'none'; ")
    assert "unsafe" not in parser.policy


@pytest.mark.parametrize("name", [*HOSTILE, UNREADABLE])
def test_a_name_in_the_data_is_no_markup(name: str) -> None:
    text = in_element({name: name})
    assert json.loads(text) == {name: name}
    assert not re.search(r"[<>&\u2028\u2029]|[^\x20-\x7e]", text)


def test_a_name_that_is_written_like_a_place_of_the_page_is_left_alone(folder: Path) -> None:
    found = gather(folder / "fleet.json") | {"placer": "{{script}}{{style}}"}
    made = page(found)
    assert made.count("{{script}}{{style}}") == 1


def test_the_scripts_are_all_there_and_make_no_markup_from_text() -> None:
    assert {path.name for path in STATIC.glob("*.js")} == set(SCRIPTS)
    for name in SCRIPTS:
        script = (STATIC / name).read_text()
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|\.href\s*=|http", script
        ), name


# ----------------------------------------------------------------------------------------------------------- colours


def palettes() -> Iterator[tuple[str, list[tuple[float, float, float]]]]:
    """Colours of groups by scheme."""
    names = [*(name for name in PALETTE if name.startswith("gang-")), "other", "back"]
    for dark, scheme in enumerate(("light", "dark")):
        codes = [PALETTE[name][dark].removeprefix("#") for name in names]
        assert len(codes) == 10
        amounts = [[level / 255 for level in bytes.fromhex(code)] for code in codes]
        yield scheme, [(red, green, blue) for red, green, blue in amounts]


#: Machado, Oliveira and Fernandes 2009, severity 1: what is left of linear red, green and blue.
VISION = {
    "all cones": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "no red cones": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "no green cones": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
}


def lab(colour: tuple[float, ...], vision: tuple[tuple[float, ...], ...]) -> tuple[float, float, float]:
    """CIE L*a*b* of a colour as it is seen."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour]
    seen = [min(1.0, max(0.0, sum(m * c for m, c in zip(row, linear, strict=True)))) for row in vision]
    to_xyz = ((0.4124, 0.3576, 0.1805), (0.2126, 0.7152, 0.0722), (0.0193, 0.1192, 0.9505))
    xyz = [sum(m * c for m, c in zip(row, seen, strict=True)) for row in to_xyz]
    x, y, z = (
        t ** (1 / 3) if t > 0.008856 else 7.787 * t + 16 / 116
        for t in (v / w for v, w in zip(xyz, (0.9505, 1, 1.089), strict=True))
    )
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


@pytest.mark.parametrize("vision", VISION)
def test_colours_of_groups_differ_to_every_eye(vision: str) -> None:
    """A difference of 12 in CIE L*a*b* is one that is seen without comparing."""
    for scheme, colours in palettes():
        seen = [lab(colour, VISION[vision]) for colour in colours]
        near = [
            (scheme, one, other, round(distance, 1))
            for one, other in combinations(range(len(seen)), 2)
            if (distance := sum((a - b) ** 2 for a, b in zip(seen[one], seen[other], strict=True)) ** 0.5) < 12
        ]
        assert near == []
