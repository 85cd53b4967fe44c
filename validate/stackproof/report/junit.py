"""The run as JUnit XML, in the form that CI systems read: one suite a gate.

A gate that was not run is a skipped test with its reason. Each failing finding is a test of its own that failed, so
that a viewer lists them; a gate's passed cases are counted in its first test's output instead of being listed by the
thousand.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator, Sequence
from xml.etree import ElementTree

from stackproof.launches import launch_lines
from stackproof.model import Finding, GateResult, Verdict
from stackproof.report.model import RunReport
from stackproof.report.text import finding_text, table_text, unproved_lines

# What XML 1.0 does not allow, escaped or not.
_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render(report: RunReport) -> str:
    """The XML document, ending with a line feed."""
    suites = ElementTree.Element("testsuites", name="validate-stack", time=_seconds(report.seconds))
    for heading, results in report.parts():
        for result in results:
            suites.append(_suite(result, heading, report))
    missing = [*unproved_lines(report), *(f"required but not run: {one}" for one in report.required_not_run)]
    if missing:
        suites.append(_of_the_run(missing))
    for count in ("tests", "failures", "errors"):
        suites.set(count, str(sum(int(suite.get(count, "0")) for suite in suites)))
    ElementTree.indent(suites)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(suites, encoding="unicode") + "\n"


def _suite(result: GateResult, heading: str, report: RunReport) -> ElementTree.Element:
    name = f"{result.name} ({heading})" if heading else result.name
    suite = ElementTree.Element("testsuite", name=_clean(name))
    properties = ElementTree.SubElement(suite, "properties")
    for key, value in _properties(result, report).items():
        ElementTree.SubElement(properties, "property", name=_clean(key), value=_clean(value))
    cases = list(_cases(result, name))
    suite.extend(cases)
    notes = "\n".join(_notes(result))
    if notes:
        ElementTree.SubElement(suite, "system-out").text = _clean(notes)
    skipped = sum(case.find("skipped") is not None for case in cases)
    failures = sum(case.find("failure") is not None for case in cases)
    counts = {"tests": len(cases), "failures": failures, "errors": 0, "skipped": skipped}
    for key, count in counts.items():
        suite.set(key, str(count))
    suite.set("time", _seconds(result.seconds))
    # The format has no time zones; viewers take the time as it stands.
    suite.set("timestamp", report.started.replace(microsecond=0, tzinfo=None).isoformat())
    suite.set("hostname", _clean(socket.gethostname() or "localhost"))
    return suite


def _of_the_run(missing: Sequence[str]) -> ElementTree.Element:
    """What the run as a whole lacks, as a suite of errors: no test failed, yet it is no pass."""
    count = str(len(missing))
    suite = ElementTree.Element("testsuite", name="the whole run", tests=count, failures="0", errors=count, skipped="0")
    for text in missing:
        name = text.partition(":")[0]
        case = ElementTree.SubElement(suite, "testcase", name=_clean(name), classname="the whole run", time="0.000")
        ElementTree.SubElement(case, "error", message=_clean(text), type="unproved").text = _clean(text)
    suite.set("time", "0.000")
    return suite


def _properties(result: GateResult, report: RunReport) -> dict[str, str]:
    facts = {
        "verdict": result.verdict.value,
        "base": report.base,
        "head": report.head,
        "cases": str(result.cases),
        "failed": str(result.failed),
        "partial": str(report.partial).lower(),
    }
    if result.worst_error is not None:
        facts["worst_error"] = f"{result.worst_error:g}"
    return facts | {f"limit.{number}": limit for number, limit in enumerate(result.shown_limits, 1)}


def _cases(result: GateResult, name: str) -> Iterator[ElementTree.Element]:
    failing = [finding for finding in result.findings if finding.fails]
    whole = _case(result, name, result.name, seconds=result.seconds)
    if result.verdict is Verdict.NOT_RUN:
        ElementTree.SubElement(whole, "skipped", message=_clean(result.reason))
    elif result.verdict is Verdict.FAILED:
        message = result.reason or f"{result.failed} of {result.cases} cases failed, {len(failing)} findings"
        ElementTree.SubElement(whole, "failure", message=_clean(message), type="failed").text = _clean(message)
    else:
        text = f"{result.cases} cases, {result.failed} failed"
        ElementTree.SubElement(whole, "system-out").text = text
    yield whole
    for number, finding in enumerate(failing, 1):
        case = _case(result, name, f"{number}: {finding.rule or 'finding'} {_place(finding)}".rstrip(), seconds=0.0)
        attributes = {"message": _clean(finding.message), "type": _clean(finding.rule or "finding")}
        ElementTree.SubElement(case, "failure", attributes).text = _clean(finding_text(finding))
        yield case


def _case(result: GateResult, suite: str, name: str, *, seconds: float) -> ElementTree.Element:
    attributes = {"name": _clean(name), "classname": _clean(suite), "time": _seconds(seconds)}
    return ElementTree.Element("testcase", attributes)


def _place(finding: Finding) -> str:
    return f"{finding.path}:{finding.line}" if finding.line else finding.path


def _notes(result: GateResult) -> Iterator[str]:
    yield from launch_lines(result)
    yield from table_text(result)
    yield from (finding_text(finding) for finding in result.findings if not finding.fails)
    yield from (f"not shown by this: {limit}" for limit in result.shown_limits)


def _seconds(seconds: float) -> str:
    return f"{seconds:.3f}"


def _clean(text: str) -> str:
    """Without the characters that an XML document cannot hold."""
    return _FORBIDDEN.sub("\ufffd", text)
