"""Screenshots of the report: ``python -m tests.report.screenshots FOLDER [NAME ...]``; without names all of them.

They are looked at, and not compared. ``readme`` is the one that README and the documentation show, and is written into
``docs/assets``.
"""

from __future__ import annotations

import base64
import os
import sys
from pathlib import Path
from typing import Any

from placer.cli import main
from tests.browsers import chromium
from tests.report.scenes import busy, write

MOMENT = 1_795_788_180  #: of the clusters; files are as old as that
PICTURE = Path(__file__).parents[2] / "docs" / "assets" / "report.png"
LAPTOP = {"width": 1440, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
PHONE = {"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": True}

#: Name to page, screen, scheme and the address in the page; ``print`` is a PDF.
SHOTS: dict[str, tuple[str, dict[str, Any], str, str]] = {
    "readme": ("placed", LAPTOP | {"width": 1180, "height": 740}, "light", ""),
    "report": ("placed", LAPTOP, "light", ""),
    "dark": ("placed", LAPTOP, "dark", ""),
    "phone": ("placed", PHONE, "light", ""),
    "phone-dark": ("placed", PHONE, "dark", ""),
    "as-is": ("as-is", LAPTOP, "light", ""),
    "group": ("placed", LAPTOP, "light", "#group=research/llm-70b-pretrain"),
    "waits": ("placed", LAPTOP, "light", "#group=vision/one-rack"),
    "rack": ("placed", LAPTOP, "light", "#domain=s1-r05"),
    "rack-dark": ("placed", LAPTOP, "dark", "#domain=s1-r05"),
    "tables": ("placed", LAPTOP | {"height": 2600}, "light", ""),
    "plan": ("plan", LAPTOP, "light", ""),
    "large": ("large", LAPTOP, "light", ""),
    "large-rack": ("large", LAPTOP, "dark", "#domain=leaf-017"),
    "print": ("placed", LAPTOP, "light", ""),
}


def pages(folder: Path, wanted: set[str]) -> None:
    """Make the pages that are wanted and not there yet."""
    calls = {
        "placed": (["solve", "--time-limit", "10", "--workers", "1"], "busy"),
        "plan": (["preempt", "--for", "vision/one-rack", "--time-limit", "20", "--workers", "1"], "busy"),
        "large": (["solve", "--method", "greedy"], "planted"),
        "as-is": ([], "busy"),
    }
    for name in wanted:
        call, instance = calls[name]
        source, placed, target = folder / f"{instance}.json", folder / f"{name}.json", folder / f"{name}.html"
        if not source.exists():
            _make(instance, source)
        if call and not placed.exists():
            main([call[0], str(source), *call[1:], "-o", str(placed), "--quiet"])
        files = [str(source), *([str(placed)] if call else [])]
        about = ["--cluster-name", "gpu-west-1", "-o", str(target), "--quiet"]
        if main(["report", *files, *about]) != 0:
            raise SystemExit(1)


def _make(instance: str, source: Path) -> None:
    if instance == "busy":
        write(source.parent, "busy", busy(MOMENT))
    else:
        size = ["--nodes", "1024", "--leaf-size", "8", "--leaves-per-spine", "16", "--queues", "4"]
        load = ["--running", "0.7", "--overfull", "0.2", "--beyond-last", "--priorities", "3", "--pod-sizes", "2,4,8"]
        main(["generate", "planted", *size, *load, "-o", str(source), "--quiet"])
    os.utime(source, (MOMENT, MOMENT))


def shoot(browser: Any, folder: Path, name: str) -> Path:
    """Take one screenshot, or print one page."""
    page, screen, scheme, address = SHOTS[name]
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": features})
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    browser.execute_cdp_cmd("Emulation.setScrollbarsHidden", {"hidden": True})
    browser.get("about:blank")
    browser.get((folder / f"{page}.html").as_uri() + address)
    browser.execute_async_script("setTimeout(arguments[0], 500)")
    if name == "print":
        data = browser.execute_cdp_cmd("Page.printToPDF", {"preferCSSPageSize": True, "printBackground": True})["data"]
    else:
        data = browser.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})["data"]
    target = PICTURE if name == "readme" else folder / f"{name}.{'pdf' if name == 'print' else 'png'}"
    target.write_bytes(base64.b64decode(data))
    if target == PICTURE:
        _reduce(target)
    return target


def _reduce(picture: Path) -> None:
    """Reduce a picture to 256 colours, which are enough for it and half as large."""
    from PIL import Image

    with Image.open(picture) as opened:
        opened.convert("RGB").quantize(256, dither=Image.Dither.NONE).save(picture, optimize=True)


def _main(folder: Path, names: list[str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    pages(folder, {SHOTS[name][0] for name in names})
    opened = chromium()
    browser = next(opened)
    for name in names:
        print(shoot(browser, folder, name))
        for entry in browser.get_log("browser"):
            print(entry["message"])
    next(opened, None)


if __name__ == "__main__":
    _main(Path(sys.argv[1]), sys.argv[2:] or list(SHOTS))
