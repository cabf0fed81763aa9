"""What models/interface.md and models/reading.md say of documents and kinds is so, and nothing is left out."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from placer.answers.audit.groups import AuditEntry, Quality, Standing
from placer.answers.explain.explanation import Explanation, JobAnswer, JobFits
from placer.base import errors
from placer.base.codes import FINDINGS, REASONS
from placer.base.errors import ClusterError, NothingFound, PlacerError, UsageError
from placer.cli.running import _summary
from placer.cli.signals import SIGNALS
from placer.kube.kinds import BY_ATTRIBUTE
from placer.lab.comparing import ComparisonRow
from placer.lab.placement_metrics import Victims
from placer.lab.sweep.records import KEY, RunRecord
from placer.passes.cluster.planning.gang_outcome import GangState
from placer.passes.configuration import OPTIONS, read_configuration
from placer.passes.preflight import CheckResult, CheckState
from placer.passes.scheduling_pass import Pass, PassOptions
from placer.problem import GroupKey

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "models/interface.md").read_text(encoding="utf-8")
READING = (ROOT / "models/reading.md").read_text(encoding="utf-8")


def table(page: str, header: str) -> list[list[str]]:
    """Rows of the table whose first line starts so, cell by cell."""
    lines = page[page.index(header) :].split("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip("|"))] for line in lines]


def test_exit_codes_are_those_of_the_errors() -> None:
    rows = {row[0]: row[1] for row in table(PAGE, "| code | means |")}
    assert list(rows) == ["0", "1", "2", "3", "4", "5", "6", *(str(128 + number) for number in SIGNALS)]
    assert rows[str(UsageError.exit_code)].startswith("usage")
    assert rows[str(NothingFound.exit_code)].startswith("nothing found")
    assert rows[str(ClusterError.exit_code)].startswith("cluster error")


def example(kind: str) -> dict[str, Any]:
    (found,) = (
        document
        for block in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
        if (document := yaml.safe_load(block))["kind"] == kind
    )
    return dict(found)


def schema(kind: str) -> dict[str, Any]:
    return dict(json.loads((ROOT / "placer" / "schemas" / f"{kind.lower()}.schema.json").read_text(encoding="utf-8")))


def keys(value: object) -> set[str]:
    if isinstance(value, dict):
        return {str(key) for key in value}.union(*map(keys, value.values()))
    return set[str]().union(*map(keys, value)) if isinstance(value, list) else set()


def properties(value: object) -> set[str]:
    """Every key that a schema names."""
    if isinstance(value, list):
        return set[str]().union(*map(properties, value))
    if not isinstance(value, dict):
        return set()
    own = set(value.get("properties") or ()) if isinstance(value.get("properties"), dict) else set()
    return own.union(*map(properties, value.values()))


@pytest.mark.parametrize("kind", ["Placement", "Policy", "PassComparison", "QueueList", "NamespaceCostList"])
def test_a_document_is_there_with_every_key_and_no_other(kind: str) -> None:
    document = example(kind)
    jsonschema.validate(document, schema(kind))
    (section,) = re.findall(rf"^## {kind}$(.*?)^## ", PAGE, re.DOTALL | re.MULTILINE)
    missing = properties(schema(kind)) - keys(document) - set(re.findall(r"`(\w+)`", section))
    assert not missing, f"keys of a {kind} that models/interface.md does not show: {sorted(missing)}"


def test_the_defaults_of_a_policy_are_those_of_the_schema() -> None:
    spec, known = example("Policy")["spec"], schema("Policy")["properties"]["spec"]["properties"]
    defaults = {name: each["default"] for name, each in known.items() if "default" in each}
    assert {name: spec[name] for name in defaults} == defaults


def test_codes_in_the_example_are_codes() -> None:
    document = example("Placement")
    assert {each["code"] for each in document["findings"]} <= FINDINGS.keys()
    assert {each["reason"]["code"] for each in document["groups"] if each["reason"]} <= REASONS.keys()


def test_every_kind_that_is_read_is_told() -> None:
    told = {
        (group if slash else "", kind): set((versions if slash else group).split(", "))
        for row in table(READING, "| kind | used for |")
        for names, text in re.findall(r"((?:`\w+`(?:, )?)+) \(([^)]+)\)", row[0])
        for group, slash, versions in [text.partition("/")]
        for kind in re.findall(r"`(\w+)`", names)
    }
    assert told == {(info.group, info.kind): set(info.versions) for info in BY_ATTRIBUTE.values()}


def told(header: str) -> list[str]:
    """Keys of the table below a heading, in its order."""
    rows = table(PAGE[PAGE.index(header) :], "| key | is |")
    return [key for row in rows for key in re.findall(r"`(\w+)`", row[0])]


def test_every_error_is_there_with_its_exit_code() -> None:
    rows = {row[0].strip("`"): int(row[1]) for row in table(PAGE, "| error | exit code |")}
    known = [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, PlacerError)]
    assert rows == {each.__name__: each.exit_code for each in known if each is not PlacerError}


def test_a_line_of_sweep_has_these_keys() -> None:
    known = {field.alias for field in RunRecord.model_fields.values()}
    assert set(told("### A line of `sweep`")) == known
    assert told("### A line of `sweep`")[: len(KEY)] == list(KEY)


def test_a_row_of_compare_has_these_keys() -> None:
    assert told("### A row of `compare`") == list(
        ComparisonRow(
            "greedy", notes=("x",), error="none", today=ComparisonRow("greedy"), victims=Victims(1, 1, 0)
        ).as_dict()
    )


def test_an_entry_of_explain_has_these_keys() -> None:
    answer = JobAnswer(JobFits.NOW, Explanation(GroupKey("", "default", "p"), admitted=True))
    assert sorted(told("### An entry of `explain`")) == sorted([*answer.as_dict(), "scheduler"])


def test_the_configuration_file_is_one(tmp_path: Path) -> None:
    file = tmp_path / "placer.yaml"
    file.write_text(yaml.safe_dump(example("Configuration")))
    found, faults = read_configuration(str(file))
    assert not faults
    assert {OPTIONS[name].key for name in found} == example("Configuration").keys() - {"apiVersion", "kind"}


def test_a_finding_of_check_has_these_keys() -> None:
    assert told("### A finding of `check`") == list(CheckResult("rights", CheckState.OK, "", "").as_dict())


def test_an_entry_of_audit_has_these_keys() -> None:
    parts = ({"name": "w"},)
    entry = AuditEntry(GroupKey("", "default", "p"), Standing.MATCH, (), Quality(1, 1, None), sub_groups=parts)
    assert told("### An entry of `audit`") == list(entry.as_dict())


def test_the_line_of_run_has_these_keys() -> None:
    """Those of a pass that ended before it read anything; ``tests/cluster`` has lines of real passes."""
    assert sorted(told("### The line of `run`")) == sorted(_summary(Pass(PassOptions())))
    assert {f"`{state.value}`" for state in GangState} <= set(re.findall(r"`\w+`", PAGE))
