"""Times as Kubernetes writes them."""

from __future__ import annotations

from datetime import UTC, datetime


def timestamp(time: datetime) -> str:
    """Write a time as Kubernetes does: UTC, whole seconds, rounded down; ValueError without a time zone."""
    if time.tzinfo is None:
        raise ValueError(f"time: found {time.isoformat()} without a time zone, expected one")
    return f"{time.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
