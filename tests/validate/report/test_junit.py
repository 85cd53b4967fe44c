"""The JUnit report against the rules that its readers go by (the schema of Jenkins' xUnit plugin)."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from stackproof.report import RunReport
from stackproof.report.junit import render

# Element -> (required attributes, allowed attributes, children in their order; * for any number)
_RULES: dict[str, tuple[set[str], set[str], str]] = {
    "testsuites": (set(), {"name", "time", "tests", "failures", "disabled", "errors"}, "(testsuite )*"),
    "testsuite": (
        {"name", "tests", "failures", "errors"},
        {"name", "tests", "failures", "errors", "skipped", "time", "timestamp", "hostname", "id", "package"},
        "(properties )?(testcase )*(system-out )?(system-err )?",
    ),
    "properties": (set(), set(), "(property )+"),
    "property": ({"name", "value"}, {"name", "value"}, ""),
    "testcase": (
        {"name", "classname"},
        {"name", "classname", "time", "assertions", "status"},
        "(skipped |failure |error |system-out |system-err )*",
    ),
    "skipped": (set(), {"message", "type"}, ""),
    "failure": (set(), {"message", "type"}, ""),
    "error": (set(), {"message", "type"}, ""),
    "system-out": (set(), set(), ""),
}


def problems(root: ElementTree.Element) -> list[str]:
    """What in a document breaks the rules."""
    found = []
    for node in root.iter():
        if node.tag not in _RULES:
            found.append(f"unknown element {node.tag}")
            continue
        required, allowed, children = _RULES[node.tag]
        if not required <= set(node.keys()) <= allowed:
            found.append(f"attributes of {node.tag}: {sorted(node.keys())}")
        if not re.fullmatch(children, "".join(f"{child.tag} " for child in node)):
            found.append(f"children of {node.tag}: {[child.tag for child in node]}")
        for number in ("tests", "failures", "errors", "skipped"):
            if number in node.keys() and not node.get(number, "").isdigit():  # noqa: SIM118  (an element is no mapping)
                found.append(f"{number} of {node.tag} is no number")
        if node.get("time") and not re.fullmatch(r"\d+\.\d+", node.get("time", "")):
            found.append(f"time of {node.tag}")
        if node.get("timestamp") and not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", node.get("timestamp", "")):
            found.append("timestamp")
    return found


def parsed(report: RunReport) -> ElementTree.Element:
    return ElementTree.fromstring(render(report))


def test_the_document_keeps_the_rules_of_the_format(report: RunReport) -> None:
    assert problems(parsed(report)) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("<skipped", "<ignored"),
        ('tests="', 'test="'),
        ('timestamp="2026-11-30T08:00:01"', 'timestamp="2026-11-30 08:00:01+00:00"'),
        ("<properties>", "<system-out /><properties>"),
    ],
)
def test_a_document_that_breaks_the_rules_is_noticed(report: RunReport, old: str, new: str) -> None:
    text = render(report)
    assert old in text
    broken = text.replace(old, new).replace("</skipped>", "</ignored>")
    assert problems(ElementTree.fromstring(broken))


def test_each_gate_is_a_suite_and_each_commit_has_its_own(report: RunReport) -> None:
    names = [suite.get("name") for suite in parsed(report)]
    assert names[-4:] == ["metal-run", "fc-window", "build", "lint"]
    assert names[0] == "fc-window (commit 1/2 111111111111 [MPS] First & foremost)"
    assert len(names) == 2 + 4 + 4


def test_the_counts_are_those_of_the_tests_that_are_listed(report: RunReport) -> None:
    root = parsed(report)
    for suite in root:
        assert int(suite.get("tests", "")) == len(suite.findall("testcase"))
        assert int(suite.get("failures", "")) == len(suite.findall("testcase/failure"))
        assert int(suite.get("skipped", "")) == len(suite.findall("testcase/skipped"))
    assert int(root.get("tests", "")) == len(root.findall(".//testcase"))
    assert int(root.get("failures", "")) == len(root.findall(".//failure"))


def test_a_gate_that_was_not_run_is_skipped_with_its_reason(report: RunReport) -> None:
    (skipped,) = parsed(report).findall("testsuite[@name='build']/testcase/skipped")
    assert skipped.get("message") == "needs macOS & Xcode"


def test_failing_findings_are_failures_and_others_are_output(report: RunReport) -> None:
    suite = parsed(report).find("testsuite[@name='metal-run']")
    assert suite is not None
    messages = [failure.get("message") for failure in suite.iterfind("testcase/failure")]
    assert messages == ["2 of 80 cases failed, 2 findings", "off by <130> & \ufffd more", "a race"]
    assert "only a remark" in suite.findtext("system-out", "")
    assert "not shown by this: Apple's compiler was not run." in suite.findtext("system-out", "")


def test_a_failed_gate_without_findings_is_a_failure(report: RunReport) -> None:
    (failure,) = parsed(report).findall("testsuite[@name='lint']/testcase/failure")
    assert failure.get("message") == "malformed"
