"""``deploy/monitoring``: alerts and dashboard ask for what there is, and ``docs/alerts.md`` says what is to be done."""

from __future__ import annotations

import itertools
import json
import re
import runpy
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from placer.passes.metrics import LoopMetrics
from tests.tools import require

ROOT = Path(__file__).parents[1]
MONITORING = ROOT / "deploy" / "monitoring"
PAGE = (ROOT / "docs" / "alerts.md").read_text(encoding="utf-8")

#: Metrics of kube-state-metrics that are asked for, all of those that it calls stable, and their labels.
KUBE_STATE_METRICS = {
    "kube_cronjob_created": {"namespace", "cronjob"},
    "kube_cronjob_spec_suspend": {"namespace", "cronjob"},
    "kube_cronjob_status_last_successful_time": {"namespace", "cronjob"},
    "kube_deployment_spec_replicas": {"namespace", "deployment"},
    "kube_deployment_status_replicas_available": {"namespace", "deployment"},
    "kube_job_failed": {"namespace", "job_name", "condition"},
    "kube_job_status_failed": {"namespace", "job_name", "reason"},
    "kube_job_status_start_time": {"namespace", "job_name"},
    "kube_pod_container_status_restarts_total": {"namespace", "pod", "container", "uid"},
}
#: Labels that Prometheus gives to what it asks for.
OF_TARGETS = {"namespace", "job", "pod"}
#: A metric and what stands in braces behind it.
SELECTOR = re.compile(r"\b((?:placer|scheduler|kube|rest_client|leader_election|process)_[a-z_]+)\b(?:\{([^}]*)\})?")
MATCHER = re.compile(r'(\w+)=~?"([^"]*)"')


def loaded(name: str) -> Any:
    return yaml.safe_load((MONITORING / name).read_text(encoding="utf-8"))


RULES = [rule for group in loaded("alerts.yml")["groups"] for rule in group["rules"]]
ALERTS = {rule["alert"]: rule for rule in RULES}
CASES = loaded("alerts_test.yml")["tests"]
PANELS = json.loads((MONITORING / "dashboard.json").read_text(encoding="utf-8"))["panels"]
ASKED = [rule["expr"] for rule in RULES]
DRAWN = [target["expr"] for panel in PANELS for target in panel["targets"]]
TRIED = [each["series"] for case in CASES for each in case["input_series"]]


def exported() -> dict[str, str]:
    """What a loop exports: the name of each series to what is said of its metric."""
    suffixes = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count"), "info": ("_info",)}
    return {
        f"{family.name}{suffix}": family.documentation
        for family in LoopMetrics("placer").registry.collect()
        for suffix in suffixes.get(family.type, ("",))
    }


def labels() -> dict[str, set[str]]:
    """Labels of each metric of a loop."""
    collectors = LoopMetrics("placer").registry._collector_to_names
    return {name: {*getattr(each, "_labelnames", ())} for each, names in collectors.items() for name in names}


def metrics_of(expression: str) -> set[str]:
    return {match[1] for match in SELECTOR.finditer(expression)}


def family(name: str) -> str:
    return re.sub(r"_(bucket|sum|count)$", "", name)


@pytest.mark.parametrize("expressions", [ASKED, DRAWN, TRIED], ids=["alerts", "dashboard", "cases"])
def test_every_metric_is_one_that_somebody_exports(expressions: list[str]) -> None:
    """With labels that it has, and with values that are told of it."""
    own, labelled = exported(), labels()
    for expression in expressions:
        assert metrics_of(expression), expression
        for name, braces in SELECTOR.findall(expression):
            assert name in own or name in KUBE_STATE_METRICS, name
            known = OF_TARGETS | labelled.get(family(name), set()) if name in own else KUBE_STATE_METRICS[name]
            known = known | ({"le"} if name.endswith("_bucket") else set())
            for label, value in MATCHER.findall(braces):
                assert label in known, f"{name}{{{label}}}"
                if name in own and label in ("outcome", "state", "queue", "step", "cause"):
                    assert re.search(rf"\b{value}\b", own[name]), f"{name}{{{label}={value}}}"


def test_both_ways_of_running_have_alerts() -> None:
    """And those of a CronJob ask for nothing that only a loop exports."""
    loop, job = loaded("alerts.yml")["groups"]
    assert (loop["name"], job["name"]) == ("placer-loop", "placer-cronjob")
    for rule in job["rules"]:
        assert metrics_of(rule["expr"]) <= KUBE_STATE_METRICS.keys()
    assert KUBE_STATE_METRICS.keys() == {name for name in metrics_of(" ".join(ASKED)) if name.startswith("kube_")}


@pytest.mark.parametrize("name", ALERTS)
def test_every_alert_says_how_bad_it_is_and_where_to_read_what_to_do(name: str) -> None:
    rule = ALERTS[name]
    assert rule["labels"]["severity"] in ("critical", "warning", "info")
    assert set(rule["annotations"]) == {"summary", "description", "runbook_url"}
    assert rule["annotations"]["runbook_url"] == f"docs/alerts.md#{name.lower()}"
    (section,) = re.findall(rf"^### {name}$(.*?)(?=^##|\Z)", PAGE, re.DOTALL | re.MULTILINE)
    text, _, commands = section.partition("```sh\n")
    assert len(text.split()) >= 15, "a paragraph"
    assert re.search(r"^(kubectl|placer|jq) ", commands, re.MULTILINE), "commands"


def test_the_page_has_no_alert_that_there_is_not() -> None:
    assert re.findall(r"^### (\w+)$", PAGE, re.MULTILINE) == list(ALERTS)
    named = set(re.findall(r"\bPlacer[A-Z]\w+", PAGE + " ".join(panel["description"] for panel in PANELS)))
    assert named <= ALERTS.keys()


def test_the_operator_gets_the_same_alerts() -> None:
    """``python deploy/monitoring/write.py``."""
    made = runpy.run_path(str(MONITORING / "write.py"))["prometheus_rule"]()
    assert made["spec"]["groups"] == loaded("alerts.yml")["groups"]
    assert loaded("prometheus-rule.yaml") == made


def test_the_operator_finds_the_metrics_of_the_loop() -> None:
    monitor = loaded("pod-monitor.yaml")["spec"]
    deployment = yaml.safe_load((ROOT / "deploy" / "overlays" / "deployment" / "deployment.yaml").read_text())
    template = deployment["spec"]["template"]
    assert monitor["selector"]["matchLabels"].items() <= template["metadata"]["labels"].items()
    ports = {port["name"] for each in template["spec"]["containers"] for port in each["ports"]}
    assert {each["port"] for each in monitor["podMetricsEndpoints"]} == ports
    (dashboard,) = loaded("kustomization.yaml")["configMapGenerator"]
    assert all((MONITORING / each).exists() for each in dashboard["files"])


# ------------------------------------------------------------------------------------------------------------ dashboard


def test_panels_have_places_of_their_own() -> None:
    assert len({panel["id"] for panel in PANELS}) == len(PANELS)
    taken = [cell for panel in PANELS for cell in cells(panel["gridPos"])]
    assert len(set(taken)) == len(taken)
    assert all(x < 24 for x, _ in taken)


def cells(place: dict[str, int]) -> Iterable[tuple[int, int]]:
    return itertools.product(range(place["x"], place["x"] + place["w"]), range(place["y"], place["y"] + place["h"]))


def test_the_dashboard_shows_all_that_is_exported() -> None:
    """But for which version it is, when it began, and what a process has besides processor and memory."""
    drawn = {family(name) for expression in DRAWN for name in metrics_of(expression)}
    left = {family(name) for name in exported()} - drawn
    assert {name for name in left if not name.startswith("process_")} == {"placer_build_info"}
    assert {"process_cpu_seconds_total", "process_resident_memory_bytes"} <= drawn


# ------------------------------------------------------------------------------------------------------------- promtool


def fires(case: dict[str, Any]) -> set[str]:
    """Alerts that fire at some time of a case."""
    labels = (sample["labels"] for test in case["promql_expr_test"] for sample in test["exp_samples"])
    return set(re.findall(r'alertname="(\w+)"', " ".join(labels)))


@pytest.mark.parametrize("name", ALERTS)
def test_every_alert_is_tried_where_it_fires_and_where_it_does_not(name: str) -> None:
    """With series of everything that it asks for."""
    asked = metrics_of(ALERTS[name]["expr"])
    assert any(name in fires(case) for case in CASES)
    silent = [case for case in CASES if name not in fires(case)]
    assert any(asked <= metrics_of(" ".join(each["series"] for each in case["input_series"])) for case in silent)


def test_every_case_asks_for_all_that_fires() -> None:
    """So that an alert that is not expected is found."""
    asked = {test["expr"] for case in CASES for test in case["promql_expr_test"]}
    assert asked == {'count by (alertname) (ALERTS{alertstate="firing"})'}


@pytest.fixture
def promtool() -> str:
    return require("promtool", "apt-get install prometheus")


def test_promtool_accepts_the_alerts(promtool: str) -> None:
    run(promtool, "check", "rules", MONITORING / "alerts.yml")


def test_alerts_fire_when_they_should_and_only_then(promtool: str) -> None:
    run(promtool, "test", "rules", MONITORING / "alerts_test.yml")


def test_promtool_accepts_what_the_dashboard_asks(promtool: str, tmp_path: Path) -> None:
    """As recorded series, with Grafana's variables filled in."""
    file = tmp_path / "drawn.yml"
    file.write_text(json.dumps({"groups": [{"name": "drawn", "rules": list(recorded())}]}))
    run(promtool, "check", "rules", file)


def recorded() -> Iterator[dict[str, str]]:
    for number, expression in enumerate(DRAWN):
        filled = expression.replace("$__rate_interval", "5m")
        yield {"record": f"drawn:{number}", "expr": re.sub(r"\$[a-z]+", ".*", filled)}


def run(*command: str | Path) -> None:
    done = subprocess.run([str(each) for each in command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
