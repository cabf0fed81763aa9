"""The picture of the report in README and on the first page: ``python -m tests.docs.screenshot``.

It needs Chromium. Run it after a change of the report's look, and look at the picture.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from tests.browsers import chromium

ROOT = Path(__file__).parents[2]
#: The cluster of README's questions.
INSTANCE = "docs/examples/busy.yaml"
PICTURE = ROOT / "docs" / "assets" / "report.png"
WIDTH, HEIGHT = 1100, 720
#: The picture of the cluster belongs on the screen, wherever the page has it.
SHOW = """
  const picture = document.querySelector("#picture, svg, canvas");
  const section = picture.closest("section") ?? picture;
  if (picture.getBoundingClientRect().bottom > innerHeight) section.scrollIntoView();
"""


def main() -> None:
    """Make the report, and take the screen with its picture."""
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        words = [sys.executable, "-m", "placer", "report", INSTANCE, "-o", str(page)]
        subprocess.run(words, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        for browser in chromium():
            size = {"width": WIDTH, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": False}
            features = [{"name": "prefers-color-scheme", "value": "light"}]
            browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
            browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "screen", "features": features})
            browser.execute_cdp_cmd("Emulation.setScrollbarsHidden", {"hidden": True})
            browser.get(page.as_uri())
            browser.execute_script(SHOW)
            browser.save_screenshot(str(PICTURE))


if __name__ == "__main__":
    main()
