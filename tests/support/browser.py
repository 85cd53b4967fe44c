"""A page in headless Chromium: how wide it is on a screen of some width, and what its console said."""

from __future__ import annotations

import html
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from skips import apt, cannot

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_MEASURE = """
addEventListener("load", () => {
  const inner = document.querySelector("iframe").contentDocument;
  const boxes = [...inner.querySelectorAll(".scroll, .plots")];
  const wide = boxes.filter((one) => one.scrollWidth > one.clientWidth);
  document.body.dataset.asked = inner.documentElement.clientWidth;
  document.body.dataset.needed = inner.documentElement.scrollWidth;
  document.body.dataset.boxes = wide.map((one) => `${one.className}:${one.firstElementChild.className}`).join(" ");
});
"""


@dataclass(frozen=True)
class Rendered:
    """What the browser said of a page.

    Attributes:
        asked: pixels that the page had for its width.
        needed: pixels that it took; more than ``asked`` is a page that scrolls sideways.
        boxes: classes of the boxes that scroll sideways by themselves.
        console: lines of the browser's console: errors of scripts, and what could not be loaded.
    """

    asked: int
    needed: int
    boxes: tuple[str, ...]
    console: tuple[str, ...]


def rendered(page: str, width: int, folder: Path) -> Rendered:
    """Show a page in a frame of that width; skips the calling test where there is no browser.

    The frame makes the width exact: a window of Chromium has a smallest width of its own.
    """
    browser = next(filter(None, map(shutil.which, _NAMES)), None)
    if browser is None:
        # Not a failure in CI: a browser is much to bring for three tests.
        pytest.skip(cannot(f"needs Chromium ({apt('chromium')})"))
    frame = f'<iframe width="{width}" height="844" style="border:0" srcdoc="{html.escape(page)}"></iframe>'
    file = folder / "frame.html"
    file.write_text(f"<!DOCTYPE html><title>frame</title>{frame}<script>{_MEASURE}</script>", encoding="utf-8")
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr"]
    command += [f"--user-data-dir={folder / 'profile'}", "--dump-dom", file.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    found = dict(re.findall(r'data-(asked|needed|boxes)="([^"]*)"', done.stdout[: done.stdout.index("<iframe")]))
    console = tuple(line for line in done.stderr.splitlines() if ":CONSOLE" in line)
    return Rendered(int(found["asked"]), int(found["needed"]), tuple(found["boxes"].split()), console)
