"""Public reports on other schedulers, cut down to one input each, with the answers that placer must give.

A folder of ``data/reports`` holds inputs and ``expect.yaml``: per input the calls of the command line and the facts
that must hold of their output. Sources and the reasons stand at the head of each input.

``expect`` is held against the Placement of a call; ``says``, ``never`` and ``at_most`` are regular expressions on the
text that it prints, with every run of blanks as one; ``rows`` on the items of its JSON. One entry of ``any`` must hold.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import pytest
import yaml

from placer.cli import main
from placer.problem.reading import read
from tests.support import DATA, listing

REPORTS = DATA / "reports"

Answer = Mapping[str, Any]
Check = Callable[["Call", Any], Iterator[str]]

#: Commands that write their document into a file next to the text that they print; others print one of both.
BOTH = ("solve", "preempt", "defrag", "repair", "compare")


def cases() -> list[Any]:
    """Each input with its expectations."""
    found = []
    for path in sorted(REPORTS.glob("*/expect.yaml")):
        for name, expected in yaml.safe_load(path.read_text()).items():
            found.append(pytest.param(path.parent / name, expected, id=f"{path.parent.name}/{name}"))
    return found


class Call:
    """One call of the command line: its text, and its JSON where a check asks for it."""

    def __init__(self, args: Sequence[str], capsys: pytest.CaptureFixture[str], file: Path) -> None:
        self.args, self._capsys, self._file = list(args), capsys, file

    @cache  # noqa: B019 - as long as its test
    def run(self, *more: str) -> tuple[int, str, str]:
        self._capsys.readouterr()
        self._file.unlink(missing_ok=True)
        code = main([*self.args, *more])
        return (code, *self._capsys.readouterr())

    @cached_property
    def _printed(self) -> tuple[tuple[int, str, str], str]:
        """What it prints, and the document that it writes meanwhile."""
        if self.args[0] not in BOTH:
            return self.run(), ""
        run = self.run("-o", str(self._file))
        return run, self._file.read_text() if self._file.exists() else ""

    @property
    def exit(self) -> int:
        return self._printed[0][0]

    @property
    def text(self) -> str:
        """All that is printed, findings included."""
        _, out, err = self._printed[0]
        return " ".join(f"{out} {err}".split())

    @cached_property
    def json(self) -> Any:
        if self.args[0] in BOTH:
            assert self._printed[1], self.text
            return listing(self._printed[1])
        _, out, err = self.run("--json")
        assert out, err
        return listing(out)

    @property
    def items(self) -> list[Any]:
        found = self.json
        return found if isinstance(found, list) else found["items"]

    @property
    def nodes(self) -> dict[str, str]:
        """Pod to node of the bindings; a move counts as none."""
        moved = {each["pod"] for each in self.json.get("moves", ())}
        return {each["pod"]: each["node"] for each in self.json["bindings"] if each["pod"] not in moved}

    @property
    def waiting(self) -> dict[str, Any]:
        """Reason of each group of which something waits."""
        return {each["name"]: each["reason"] for each in self.json["groups"] if each["reason"]}

    @property
    def findings(self) -> list[str]:
        return [f"{each['code']} {each['object']}: {each['message']}" for each in self.json["findings"]]

    @property
    def told(self) -> list[str]:
        return [*self.findings, *(f"{why['code']} {why['message']}" for why in self.waiting.values())]

    @cache  # noqa: B019 - as long as its test
    def instance(self) -> Any:
        return read(*(each for each in self.args[1:] if Path(each).exists()))


def bound_count(call: Call, count: int) -> Iterator[str]:
    if len(call.nodes) != count:
        yield f"bound: found {call.nodes}, expected {count}"


def bound_exact(call: Call, expected: Mapping[str, str | list[str]]) -> Iterator[str]:
    for pod, node in expected.items():
        if call.nodes.get(pod) not in ([node] if isinstance(node, str) else node):
            yield f"{pod}: found {call.nodes.get(pod)}, expected {node}"


def unbound(call: Call, pods: Sequence[str]) -> Iterator[str]:
    for pod in pods:
        if pod in call.nodes:
            yield f"{pod}: found {call.nodes[pod]}, expected no node"


def counts(call: Call, expected: Mapping[str, int]) -> Iterator[str]:
    for prefix, count in expected.items():
        found = [pod for pod in call.nodes if pod.startswith(prefix)]
        if len(found) != count:
            yield f"{prefix}*: found {found}, expected {count}"


def waits(call: Call, expected: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    for pattern, wanted in expected.items():
        reasons = {name: why for name, why in call.waiting.items() if re.fullmatch(pattern, name)}
        if not reasons or len(reasons) != wanted.get("count", len(reasons)):
            yield f"{pattern}: found {list(reasons)} waiting, expected {wanted.get('count', 'some')}"
        for name, why in reasons.items():
            if why["code"] not in wanted.get("codes", [why["code"]]):
                yield f"{name}: found {why['code']}, expected one of {wanted['codes']}"
            for regex in each_of(call, wanted.get("says", ())):
                if not re.search(regex, why["message"]):
                    yield f"{name}: {regex} is not in: {why['message']}"
            for regex in wanted.get("never", ()):
                if re.search(regex, why["message"]):
                    yield f"{name}: {regex} is in: {why['message']}"


def each_of(call: Call, regexes: Sequence[str]) -> Iterator[str]:
    """The regular expressions; ``{each:PREFIX}`` makes one per pod of that prefix that has a node."""
    for regex in regexes:
        prefix = re.search(r"\{each:([^}]*)\}", regex)
        if prefix is None:
            yield regex
            continue
        for pod in call.nodes:
            if pod.startswith(prefix[1]):
                yield regex.replace(prefix[0], re.escape(pod))


def marks(call: Call, wanted: Mapping[str, Any]) -> Iterator[str]:
    pods = wanted["pods"]
    placed = [pod for pod in pods if pod in call.nodes]
    if placed:
        if len(placed) < len(pods) or not wanted.get("room"):
            yield f"found {placed} of {pods} placed"
        return
    refused = [why for why in call.waiting.values() if why["code"] in wanted.get("codes", ["Unsupported"])]
    gang_waits = not wanted.get("room") and not refused and bool(call.waiting)
    if not gang_waits and not any(re.search(wanted["names"], why["message"]) for why in refused):
        yield f"no reason of a refusal names {wanted['names']}: {call.told}"


def matching(select: Callable[[Call], list[str]], *, expected: bool) -> Check:
    def check(call: Call, regexes: Sequence[str]) -> Iterator[str]:
        texts = select(call)
        for regex in regexes:
            if any(re.search(regex, text) for text in texts) is not expected:
                yield f"{regex}: {'not ' if expected else ''}found in {texts}"

    return check


def findings_none(call: Call, _wanted: bool) -> Iterator[str]:
    if call.findings:
        yield f"found {call.findings}"


def equal(part: str) -> Check:
    def check(call: Call, wanted: Mapping[str, Any] | str) -> Iterator[str]:
        found = call.json[part]
        if isinstance(wanted, str):
            if found != wanted:
                yield f"{part}: found {found}, expected {wanted}"
            return
        for key, value in wanted.items():
            if found.get(key) != value:
                yield f"{part}.{key}: found {found.get(key)}, expected {value}"

    return check


def groups(call: Call, expected: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    found = {each["name"]: each for each in call.json["groups"]}
    for name, wanted in expected.items():
        for key, value in wanted.items():
            if found.get(name, {}).get(key, "no group") != value:
                yield f"{name}.{key}: found {found.get(name, {}).get(key)}, expected {value}"


def zones(call: Call, expected: Mapping[str, int]) -> Iterator[str]:
    found = [zone for each in call.json["bindings"] for zone in each.get("numaZones", ())]
    for zone, count in expected.items():
        if found.count(zone) != count:
            yield f"{zone}: found {found}, expected {count}"


def zones_in_order(call: Call, expected: Sequence[Sequence[str]]) -> Iterator[str]:
    found = [each["numaZones"] for each in call.json["bindings"] if each.get("numaZones")]
    if found != expected:
        yield f"zones: found {found}, expected {expected}"


def evicted(call: Call, pods: Sequence[str]) -> Iterator[str]:
    found = [each["pod"] for each in call.json.get("evictions", ())]
    if sorted(found) != sorted(pods):
        yield f"evicted: found {found}, expected {pods}"


def moved(call: Call, expected: Mapping[str, Sequence[str]]) -> Iterator[str]:
    found = {each["pod"]: [each["from"], each["to"]] for each in call.json.get("moves", ())}
    if found != expected:
        yield f"moved: found {found}, expected {expected}"


def distinct(call: Call, sets: Sequence[Sequence[str]]) -> Iterator[str]:
    for pods in sets:
        nodes = [call.nodes.get(pod) for pod in pods]
        if None in nodes or len(set(nodes)) < len(pods):
            yield f"{pods}: found {nodes}, expected a node each"


def within(call: Call, expected: Mapping[str, Sequence[str]]) -> Iterator[str]:
    for domain, pods in expected.items():
        for pod in pods:
            if domain not in call.instance().topology.path(call.nodes.get(pod, "")):
                yield f"{pod}: found {call.nodes.get(pod)}, expected a node of {domain}"


def _domains(call: Call, key: str) -> dict[str, str | None]:
    nodes = call.instance().nodes
    return {pod: nodes[node].labels.get(key) for pod, node in call.nodes.items()}


def other_domain(call: Call, expected: Sequence[Any]) -> Iterator[str]:
    for key, pods in expected:
        found = [_domains(call, key).get(pod) for pod in pods]
        if None in found or len(set(found)) < len(pods):
            yield f"{pods}: found {found}, expected a domain of {key} each"


def apart(call: Call, expected: Sequence[Any]) -> Iterator[str]:
    for key, *sets in expected:
        patterns = sets[0] if len(sets) == 1 else sets
        domains = _domains(call, key)
        held = [{domains[pod] for pod in domains if re.fullmatch(pattern, pod)} for pattern in patterns]
        if sum(map(len, held)) != len(set().union(*held)):
            yield f"{patterns}: found {held}, expected no domain of {key} in common"


CHECKS: dict[str, Check] = {
    **{each.__name__: each for each in (bound_count, bound_exact, unbound, counts, waits, marks, findings_none)},
    **{each.__name__: each for each in (groups, zones, zones_in_order, evicted, moved, distinct, within)},
    **{each.__name__: each for each in (other_domain, apart)},
    "found": matching(lambda call: call.findings, expected=True),
    "found_not": matching(lambda call: call.findings, expected=False),
    "told": matching(lambda call: call.told, expected=True),
    "told_not": matching(lambda call: call.told, expected=False),
    "verdict": equal("verdict"),
    "instance": equal("instance"),
}


def rows(call: Call, wanted: Mapping[str, Any]) -> Iterator[str]:
    chosen = [
        item
        for item in call.items
        if all(re.fullmatch(str(regex), str(_at(item, path))) for path, regex in wanted.get("where", {}).items())
    ]
    if len(chosen) < wanted.get("min", 1):
        yield f"rows {wanted.get('where')}: found {len(chosen)} in {call.items}"
    for item in chosen:
        for key, value in wanted.get("has", {}).items():
            found = _at(item, key)
            if found != value and not (isinstance(found, Mapping) and set(found.values()) == {value}):
                yield f"{key}: found {found}, expected {value}"
        for regex in wanted.get("says", ()):
            if not re.search(regex, json.dumps(item)):
                yield f"{regex} is not in {json.dumps(item)}"


def _at(item: Any, path: str) -> Any:
    for part in path.split("."):
        item = item.get(part) if isinstance(item, Mapping) else None
    return item


def faults(call: Call, wanted: Mapping[str, Any]) -> Iterator[str]:
    """All that does not hold of one call."""
    unknown = set(wanted) - {"args", "exit", "says", "never", "at_most", "rows", "expect", "any"}
    assert not unknown, unknown
    assert not set(wanted.get("expect", {})) - set(CHECKS), set(wanted["expect"]) - set(CHECKS)
    exits = wanted.get("exit")
    if exits is not None and call.exit not in (exits if isinstance(exits, list) else [exits]):
        yield f"exit code: found {call.exit}, expected {exits}"
    for regex in wanted.get("says", ()):
        if not re.search(regex, call.text):
            yield f"{regex} is not in: {call.text}"
    for regex in wanted.get("never", ()):
        if re.search(regex, call.text):
            yield f"{regex} is in: {call.text}"
    for regex, most in wanted.get("at_most", {}).items():
        if len(re.findall(regex, call.text)) > most:
            yield f"{regex} is {len(re.findall(regex, call.text))} times in: {call.text}"
    for row in wanted.get("rows", ()):
        yield from rows(call, row)
    for word, value in wanted.get("expect", {}).items():
        yield from CHECKS[word](call, value)
    choices = wanted.get("any", ())
    tried = [list(faults(call, choice)) for choice in choices]
    if choices and all(tried):
        yield f"none of {len(choices)} holds: {tried}"


@pytest.mark.usefixtures("search_here")
@pytest.mark.parametrize(("path", "expected"), cases())
def test_a_report_has_the_answer_that_it_asks_for(
    path: Path, expected: dict[str, Any], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    wanted = {key: value for key, value in expected.items() if key not in ("kind", "solve", "calls")}
    calls = [] if expected.get("solve") is False else [{"args": ["solve", "{}"], **wanted}]
    found = []
    for asked in (*calls, *expected.get("calls", ())):
        call = Call([each.replace("{}", str(path)) for each in asked["args"]], capsys, tmp_path / "document.json")
        wrong = list(faults(call, asked))
        if "exit" not in asked and "any" not in asked and call.exit not in (0, 2):
            wrong.append(f"exit code {call.exit}")
        found += [f"{' '.join(asked['args'])}: {fault}" for fault in wrong]
    assert not found, "\n".join(found)


def test_every_input_has_its_expectations() -> None:
    for folder in REPORTS.iterdir():
        written = set(yaml.safe_load((folder / "expect.yaml").read_text()))
        assert written == {each.name for each in folder.iterdir()} - {"expect.yaml"}
