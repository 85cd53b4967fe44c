"""The page in a real browser, headless: nothing is wider than a phone, and no script fails."""

from __future__ import annotations

import html
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from skips import cannot
from stackproof.report.html import render
from stackproof.report.model import RunReport

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
# Headless browsers have a least width, so the page is put in a frame of a phone's.
LISTENER = "<script>onerror = message => { parent.told.push(message); };</script>"
FRAME = """<!doctype html>
<title>waiting</title>
<script>var told = [];</script>
<iframe style="width: 390px; height: 800px; border: 0" srcdoc="{page}"></iframe>
<script>
const frame = document.querySelector("iframe");
frame.addEventListener("load", () => {{
  const body = frame.contentDocument.body;
  const right = Math.max(...Array.from(body.querySelectorAll("body > *"), one => one.getBoundingClientRect().right));
  const sections = body.querySelectorAll("h2").length;
  document.title = `to ${{Math.ceil(right)}}, errors ${{told.length}}, sections ${{sections}}`;
}});
</script>"""


def title_in_a_browser(page: str, folder: Path) -> str:
    """What the frame found out about a page."""
    browser = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if browser is None:
        pytest.skip(cannot("no chromium here (apt-get install chromium, or another of its family)"))
    file = folder / "frame.html"
    file.write_text(FRAME.format(page=html.escape(page.replace("<head>", f"<head>{LISTENER}", 1))))
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'profile'}"]
    command += ["--dump-dom", file.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    found = re.search("<title>(.*?)</title>", done.stdout)
    assert found
    return found.group(1)


def test_a_report_fits_a_phone_and_no_script_fails(report: RunReport, tmp_path: Path) -> None:
    found = title_in_a_browser(render(report), tmp_path)
    right, errors, sections = map(int, re.findall(r"\d+", found))
    assert right <= 390
    assert (errors, sections) == (0, render(report).count("<h2>"))


def test_a_page_that_is_too_wide_is_found(report: RunReport, tmp_path: Path) -> None:
    wide = render(report).replace("<h2>", "<div style='width:500px'></div><h2>", 1)
    assert title_in_a_browser(wide, tmp_path).startswith("to 520, errors 0")


def test_a_script_that_fails_is_found(report: RunReport, tmp_path: Path) -> None:
    broken = render(report).replace("<h2>", "<script>noSuchFunction();</script><h2>", 1)
    assert ", errors 1, " in title_in_a_browser(broken, tmp_path)
