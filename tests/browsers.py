"""A headless Chromium for tests of pages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.tools import require, require_package

__all__ = ["COLOURS", "HOW", "chromium"]

HOW = "apt-get install chromium chromium-driver"


#: Of JavaScript: ``ratio`` of two colours (contrast as WCAG has it), ``back`` of an element (the colour that it stands
#: on), ``textsWithin`` an element: contrast, tag and words of everything below it that has words of its own.
COLOURS = """
  const luminance = (rgb) => rgb.slice(0, 3).map((c) => c / 255)
    .map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const pen = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const parse = (colour) => {
    pen.clearRect(0, 0, 1, 1); pen.fillStyle = colour; pen.fillRect(0, 0, 1, 1);
    return [...pen.getImageData(0, 0, 1, 1).data];
  };
  const ratio = (one, other) => {
    const [high, low] = [luminance(parse(one)), luminance(parse(other))].sort((a, b) => b - a);
    return (high + 0.05) / (low + 0.05);
  };
  const back = (element) => {
    for (let each = element; each; each = each.parentElement) {
      const colour = getComputedStyle(each).backgroundColor;
      if (parse(colour)[3] === 255) return colour;
    }
    return "white";
  };
  const textsWithin = (root) => [...root.querySelectorAll("*")].filter((element) => {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    return own && element.checkVisibility() && !element.closest("script, style, svg, math, .headerlink");
  }).map((element) => {
    const colour = getComputedStyle(element).color;
    return [ratio(colour, back(element)), element.tagName, element.textContent.slice(0, 40)];
  });
"""


def chromium() -> Iterator[Any]:
    """Debian's Chromium, driven by its own driver; nothing is downloaded. Console and network are logged."""
    program, driver = require("chromium", HOW), require("chromedriver", HOW)
    require_package("selenium", "pip install '.[dev]'")
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = program
    for argument in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--window-size=1400,1000",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    found = webdriver.Chrome(options=options, service=Service(driver))
    found.set_script_timeout(60)
    yield found
    found.quit()
