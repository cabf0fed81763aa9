"""Writes ``prometheus-rule.yaml``: the alerts of ``alerts.yml`` as the object that an operator of Prometheus takes.

``python deploy/monitoring/write.py``, after ``alerts.yml`` has changed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

__all__ = ["ALERTS", "prometheus_rule"]

HERE = Path(__file__).parent
ALERTS = HERE / "alerts.yml"


def prometheus_rule() -> dict[str, Any]:
    """The object, with the groups as they are."""
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {"name": "placer"},
        "spec": {"groups": yaml.safe_load(ALERTS.read_text(encoding="utf-8"))["groups"]},
    }


class _Dumper(yaml.SafeDumper):
    """Writes expressions of several lines as they stand."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)


def main() -> None:
    head = "# Made by write.py from alerts.yml.\n"
    text = yaml.dump(prometheus_rule(), Dumper=_Dumper, sort_keys=False, width=120)
    (HERE / "prometheus-rule.yaml").write_text(head + text, encoding="utf-8")


if __name__ == "__main__":
    main()
