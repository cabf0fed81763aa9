"""The colours of the report and of the documentation's pictures, for light and for dark pages.

Texts have a contrast of 4.5 or more on every colour of a pod; groups differ to every eye (``tests/report``).
"""

from __future__ import annotations

from collections.abc import Mapping

#: Name to the colour on a light page, and on a dark one.
PALETTE: Mapping[str, tuple[str, str]] = {
    "back": ("#ffffff", "#12161c"),
    "raised": ("#f5f7fa", "#1a2029"),
    "text": ("#16202c", "#eef3f8"),
    "soft": ("#51606f", "#a9b5c2"),
    "line": ("#d5dce4", "#343f4c"),
    "link": ("#0b57a4", "#8cc2ff"),
    "focus": ("#0b57a4", "#ffd27d"),
    "good": ("#14692b", "#7fd694"),
    "warn": ("#7a4d00", "#f0c060"),
    "bad": ("#b3261e", "#ff9c90"),
    "band": ("#edf1f6", "#202832"),
    "band-full": ("#cfdcec", "#2c3f57"),
    "free": ("#eff3f7", "#222a34"),
    "other": ("#c3ccd6", "#566372"),
    "ran": ("#b9cde8", "#38557d"),
    "new": ("#83c7a3", "#1f6b4a"),
    "stranded": ("#e6c9a2", "#6b4c22"),
    "waits": ("#f0bd6b", "#8f6413"),
    "gang-0": ("#86baf3", "#2f64ae"),
    "gang-1": ("#f3e7a1", "#595210"),
    "gang-2": ("#a5d6a0", "#35783c"),
    "gang-3": ("#dd8fc8", "#804989"),
    "gang-4": ("#8e86d2", "#3f3a86"),
    "gang-5": ("#cf8468", "#6e3225"),
    "gang-6": ("#5fb2a1", "#0e5a4c"),
    "gang-7": ("#f0bd6b", "#8f6413"),
    "step-0": ("#e3eaf4", "#233044"),
    "step-1": ("#c6d8ee", "#294463"),
    "step-2": ("#a4c3e6", "#2f5883"),
    "step-3": ("#82addd", "#3468a0"),
    "step-4": ("#6b9bd1", "#3e74ad"),
}


def declarations(*, dark: bool) -> str:
    """Every colour as a custom property of CSS."""
    return " ".join(f"--{name}: {pair[dark]};" for name, pair in PALETTE.items())
