"""A stand-in for GitHub's ``gh``: issues in a JSON file, and only the commands and options that the workflow uses.

Run as ``gh`` by a wrapper on PATH. Anything it does not know ends with status 64, so that a workflow that asks for more
than was tried here fails its test.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

Issue = dict[str, Any]
ANSWERS: dict[str, Callable[[Any], str]] = {
    ".[].number": lambda issues: "\n".join(str(issue["number"]) for issue in issues),
    ".body": lambda issue: str(issue["body"]),
    '.state + " " + .stateReason': lambda issue: f"{issue['state']} {issue['stateReason']}",
}
"""What ``--jq`` expressions come to."""


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> Any:
        sys.exit(f"fake gh: {message}")


def main() -> None:
    """Do what the arguments ask for, on the file that ``FAKE_GH`` names."""
    store = Path(os.environ["FAKE_GH"])
    issues: list[Issue] = json.loads(store.read_text()) if store.exists() else []
    noun, verb, *rest = sys.argv[1:]
    actions = {
        ("label", "create"): create_label,
        ("issue", "list"): list_issues,
        ("issue", "view"): view_issue,
        ("issue", "create"): create_issue,
        ("issue", "close"): close_issue,
        ("issue", "reopen"): reopen_issue,
    }
    if os.environ.get("FAKE_GH_FAILS") == f"{noun} {verb}":
        sys.exit("fake gh: HTTP 502")
    actions[noun, verb](issues, rest)
    store.write_text(json.dumps(issues, indent=1))


def parse(arguments: list[str], *options: str, positional: str = "") -> argparse.Namespace:
    parser = Parser()
    if positional:
        parser.add_argument(positional)
    for option in options:
        parser.add_argument(option, required=True)
    return parser.parse_args(arguments)


def create_label(issues: list[Issue], arguments: list[str]) -> None:
    assert "--force" in arguments, "a label that is there already would be an error"


def list_issues(issues: list[Issue], arguments: list[str]) -> None:
    asked = parse(arguments, "--state", "--label", "--limit", "--json", "--jq")
    assert (asked.state, asked.json) == ("all", "number")
    print(ANSWERS[asked.jq]([issue for issue in issues if asked.label in issue["labels"]]))


def view_issue(issues: list[Issue], arguments: list[str]) -> None:
    asked = parse(arguments, "--json", "--jq", positional="number")
    issue = issues[int(asked.number) - 1]
    print(ANSWERS[asked.jq]({name: issue[name] for name in asked.json.split(",")}))


def create_issue(issues: list[Issue], arguments: list[str]) -> None:
    asked = parse(arguments, "--label", "--title", "--body-file")
    body = Path(asked.body_file).read_text().replace("\n", "\r\n")  # as GitHub may give it back
    facts = {"state": "OPEN", "stateReason": "", "comments": []}
    issues.append({"number": len(issues) + 1, "title": asked.title, "body": body, "labels": [asked.label], **facts})


def close_issue(issues: list[Issue], arguments: list[str]) -> None:
    asked = parse(arguments, "--reason", "--comment", positional="number")
    issue = issues[int(asked.number) - 1]
    issue.update(state="CLOSED", stateReason=asked.reason.upper())
    issue["comments"].append(asked.comment)


def reopen_issue(issues: list[Issue], arguments: list[str]) -> None:
    asked = parse(arguments, "--comment", positional="number")
    issue = issues[int(asked.number) - 1]
    issue.update(state="OPEN", stateReason="REOPENED")
    issue["comments"].append(asked.comment)


if __name__ == "__main__":
    main()
