"""The cases taken from scheduler-plugins, by id."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

__all__ = ["plugin_cases"]


@cache
def plugin_cases() -> Mapping[str, Mapping[str, Any]]:
    """Sets of cases of all plug-ins."""
    text = (Path(__file__).parent / "data" / "scheduler_plugins.yaml").read_text("utf-8")
    return {case["id"]: case for case in yaml.safe_load(text)}
