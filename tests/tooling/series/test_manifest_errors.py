"""Each mistake in a manifest, a message or an overlay is one sentence that names the file and the line."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from documents import document
from patchstack.cli import main
from patchstack.errors import ExitCode, ManifestError, ManifestErrors, UsageError
from patchstack.series import load_series

MANIFEST = """\
format: 1
changes:
  - id: one
    title: "[MPS] One"
    message: one.md
    ops: [tint]
    upstream:
      - dispatch: tint
        key: MPS
    edits:
      - kind: add-dispatch-key
        path: native_functions.yaml
        op: tint
        key: MPS
        function: tint_mps
      - kind: create-file
        path: kernels/Tint.metal
      - kind: place-fragment
        path: ops/Tint.mm
        fragment: tint_mps
        after: {function: shade_mps}
  - id: two
    title: "[MPS] Two"
    message: two.md
    needs: [one]
    requires:
      - path: ops/Tint.mm
        reason: the host function
    upstream:
      - defines: tint_twice
        path: ops/Tint.mm
    edits:
      - kind: remove-python-entry
        path: lists.py
        in: [{assign: NAMES}]
        entry: '"tint"'
"""
FILES = {
    "series.yaml": MANIFEST,
    "one.md": "Adds one.\n",
    "two.md": "Adds two.\n",
    "overlay/kernels/Tint.metal": "int tint;\n",
    "overlay/ops/Tint.mm": "// context\n// fragment: tint_mps\nvoid tint_mps() {}\n// end fragment\n",
}


@dataclass(frozen=True)
class Mistake:
    """A change to the right files, and the complaint it must cause.

    Attributes:
        where: file and line the complaint names, below the series' folder.
        problem: what it says, in part.
        old: text of the manifest, each replaced by the ``new`` beside it.
        files: other files by name; ``None`` takes one away.
        act: anything else that is done to the folder.
    """

    where: str
    problem: str
    old: str = ""
    new: str = ""
    files: dict[str, bytes | None] = field(default_factory=dict)
    act: Callable[[Path], None] | None = None


def link(name: str, target: str) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        file = folder / name
        if file.is_dir():
            file.rename(folder / f"{target}_kept")
        else:
            file.rename(folder / "kept")
        os.symlink(folder / "kept" if not (folder / f"{target}_kept").exists() else folder / f"{target}_kept", file)

    return make


def pipe(name: str) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        (folder / name).unlink()
        os.mkfifo(folder / name)

    return make


def without_overlay(folder: Path) -> None:
    shutil.rmtree(folder / "overlay")


BOMB = "".join(f"a{n}: &a{n} [{f'*a{n - 1}, *a{n - 1}, *a{n - 1}' if n else 'x'}]\n" for n in range(24))
"""A few lines of YAML whose text, with its aliases written out, has 3 ** 23 letters."""


def bases(path: str, blob: str) -> str:
    """The head of a manifest with the base of one file."""
    return f"format: 1\nbases:\n  - {{path: {path}, blobs: ['{blob}']}}\n"


MISTAKES = {
    "an unknown key of the series": Mistake(
        "series.yaml:37", "unknown key 'extra' in the series", MANIFEST, MANIFEST + "extra: 1\n"
    ),
    "an unknown key of a change": Mistake(
        "series.yaml:5", "unknown key 'mesage'", "    message: one.md", "    mesage: one.md\n    message: one.md"
    ),
    "an unknown key of an edit": Mistake(
        "series.yaml:15",
        "unknown key 'func' in an edit",
        "        function: tint_mps",
        "        func: tint_mps\n        function: tint_mps",
    ),
    "an unknown key of an anchor": Mistake(
        "series.yaml:21", "unknown key 'inside'", "{function: shade_mps}", "{function: shade_mps, inside: at}"
    ),
    "an unknown key of a marker": Mistake(
        "series.yaml:9",
        "unknown key 'keys' in an upstream marker",
        "        key: MPS\n    edits",
        "        keys: MPS\n        key: MPS\n    edits",
    ),
    "an unknown key of a step": Mistake(
        "series.yaml:35", "unknown key 'index'", "{assign: NAMES}", "{assign: NAMES, index: 1}"
    ),
    "a dispatch key that torchgen does not know": Mistake(
        "series.yaml:14",
        "unknown dispatch key 'MSP'; expected one of CPU, CUDA, MPS, ",
        "        key: MPS\n        function",
        "        key: MSP\n        function",
    ),
    "such a key in a marker": Mistake(
        "series.yaml:9", "unknown dispatch key 'MSP'", "        key: MPS\n    edits", "        key: MSP\n    edits"
    ),
    "an unknown kind": Mistake("series.yaml:16", "unknown kind of edit 'make-file'", "create-file", "make-file"),
    "an unknown format": Mistake("series.yaml:1", "expected 1, found 2", "format: 1", "format: 2"),
    "no format": Mistake("series.yaml:1", "the series needs the key 'format'", "format: 1\n", ""),
    "no id": Mistake("series.yaml:3", "a change needs the key 'id'", "  - id: one\n    title", "  - title"),
    "no title": Mistake("series.yaml:3", "a change needs the key 'title'", '    title: "[MPS] One"\n', ""),
    "no edits": Mistake(
        "series.yaml:32", "'edits' must be a list", MANIFEST[MANIFEST.rindex("    edits:") :], "    edits: []\n"
    ),
    "no upstream marker": Mistake(
        "series.yaml:22",
        "a change needs the key 'upstream'",
        "    upstream:\n      - defines: tint_twice\n        path: ops/Tint.mm\n",
        "",
    ),
    "an id that is none": Mistake("series.yaml:3", "'One!' cannot be an id", "id: one", "id: One!"),
    "a duplicate id": Mistake("series.yaml:22", "two changes have the id 'one'", "id: two", "id: one"),
    "a duplicate title": Mistake("series.yaml:22", "two changes have the title '[MPS] One'", "[MPS] Two", "[MPS] One"),
    "a title of two lines": Mistake("series.yaml:4", "a title is one line", '"[MPS] One"', '"[MPS]\\nOne"'),
    "a need of a later change": Mistake(
        "series.yaml:3", "needs 'two', which is not an earlier change", "    ops: [tint]", "    needs: [two]"
    ),
    "a need of itself": Mistake("series.yaml:22", "needs 'two'", "needs: [one]", "needs: [two]"),
    "a duplicate YAML key": Mistake(
        "series.yaml:5",
        "the key 'title' stands twice in a change",
        "    message: one.md",
        "    title: again\n    message: one.md",
    ),
    "a path that leaves the tree": Mistake("series.yaml:17", "leaves the tree", "kernels/Tint.metal", "../Tint.metal"),
    "a path that leaves it on the way": Mistake(
        "series.yaml:17", "leaves the tree", "kernels/Tint.metal", "a/../../Tint.metal"
    ),
    "an absolute path": Mistake("series.yaml:17", "is absolute", "kernels/Tint.metal", "/etc/passwd"),
    "a path on a drive": Mistake("series.yaml:17", "is absolute", "kernels/Tint.metal", "C:/Tint.metal"),
    "a path with a backslash": Mistake(
        "series.yaml:17", "has a backslash", "kernels/Tint.metal", "kernels\\Tint.metal"
    ),
    "a path in .git": Mistake(
        "series.yaml:17", "inside a git directory", "kernels/Tint.metal", ".GIT/hooks/pre-commit"
    ),
    "a path in .git as Windows reads it": Mistake(
        "series.yaml:17", "inside a git directory", "kernels/Tint.metal", ".git ./hooks/pre-commit"
    ),
    "a path in .git by its short name": Mistake(
        "series.yaml:17", "inside a git directory", "kernels/Tint.metal", "GIT~1/hooks/pre-commit"
    ),
    "a path in .git as a Mac reads it": Mistake(
        "series.yaml:17", "cannot be printed", "kernels/Tint.metal", ".g\u200cit/hooks/pre-commit"
    ),
    "a path with a line feed": Mistake("series.yaml:17", "cannot be printed", "kernels/Tint.metal", '"Tint\\n.metal"'),
    "a path with a NUL": Mistake("series.yaml:17", "cannot be printed", "kernels/Tint.metal", '"Tint\\0.metal"'),
    "a base that is no blob id": Mistake(
        "series.yaml:3", "'blobs' is a list of blob ids", "format: 1\n", bases("kernels/Tint.metal", "abc")
    ),
    "a base of a file that no edit is made to": Mistake(
        "series.yaml:2", "names setup.py, which no edit is made to", "format: 1\n", bases("setup.py", "0" * 40)
    ),
    "a replaced definition of no kind": Mistake(
        "series.yaml:23",
        "what goes needs exactly one of function",
        "        after: {function: shade_mps}\n",
        "        after: {function: shade_mps}\n        replaces:\n          - {namespace: at}\n",
    ),
    "a path too long for a file": Mistake(
        "series.yaml:17", "the overlay file is missing", "kernels/Tint.metal", "t" * 300
    ),
    "a message with a name too long": Mistake("series.yaml:5", "cannot be read", "one.md", "m" * 300),
    "a message that is a pipe": Mistake("series.yaml:5", "not a regular file", act=pipe("one.md")),
    "an overlay file that is a pipe": Mistake(
        "series.yaml:17", "the overlay file is missing", act=pipe("overlay/kernels/Tint.metal")
    ),
    "a manifest that is a pipe": Mistake("series.yaml", "not a regular file", act=pipe("series.yaml")),
    "a key that is a list": Mistake("series.yaml:37", "a key of the series must", MANIFEST, MANIFEST + "? [a]\n: b\n"),
    "a key that doubles and doubles": Mistake(
        "series.yaml:24", "a key of the series must be a text", MANIFEST, f"{BOMB}{MANIFEST}? *a23\n: b\n"
    ),
    "a path that is not short": Mistake("series.yaml:17", "shortest form", "kernels/Tint.metal", "kernels//Tint.metal"),
    "a message outside the series": Mistake("series.yaml:5", "leaves the tree", "one.md", "../one.md"),
    "a missing message": Mistake("series.yaml:5", "the message 'one.md' is missing", files={"one.md": None}),
    "an empty message": Mistake("one.md:1", "the message is empty", files={"one.md": b"\n"}),
    "a message that is not UTF-8": Mistake("one.md:2", "is not UTF-8", files={"one.md": b"Fine.\nNot \xff.\n"}),
    "a message that is a folder": Mistake("series.yaml:5", "cannot be read", "message: one.md", "message: overlay"),
    "a missing overlay file": Mistake(
        "series.yaml:17", "the overlay file is missing", files={"overlay/kernels/Tint.metal": None}
    ),
    "a missing fragment": Mistake(
        "series.yaml:20", "has no fragment 'tint_cpu'", "fragment: tint_mps", "fragment: tint_cpu"
    ),
    "a layer that the overlay does not have": Mistake(
        "series.yaml:5",
        "the overlay has no layer 'bright'",
        "    message: one.md",
        "    overlay: bright\n    message: one.md",
    ),
    "a layer outside the overlay": Mistake(
        "series.yaml:5", "the overlay has no layer '..'", "    message: one.md", "    overlay: ..\n    message: one.md"
    ),
    "a layer that is a file": Mistake(
        "series.yaml:5",
        "the overlay has no layer 'bright'",
        "    message: one.md",
        "    overlay: bright\n    message: one.md",
        files={"overlay/bright": b"text\n"},
    ),
    "a fragment that neither the layer nor the rest has": Mistake(
        "series.yaml:21",
        "overlay/bright/ops/Tint.mm or ",
        "    message: one.md",
        "    overlay: bright\n    message: one.md",
        files={
            "overlay/bright/ops/Tint.mm": b"// fragment: other\nint a;\n// end fragment\n",
            "overlay/ops/Tint.mm": b"// fragment: another\nint a;\n// end fragment\n",
        },
    ),
    "conditions that are none": Mistake(
        "series.yaml:5",
        "'only_where' must be a list with at least one entry",
        "    message: one.md",
        "    only_where: []\n    message: one.md",
    ),
    "a condition without a reason": Mistake(
        "series.yaml:6",
        "a condition needs the key 'reason'",
        "    message: one.md",
        "    only_where:\n      - {dispatch: tint, key: MPS}\n    message: one.md",
    ),
    "a condition of a kind there is not": Mistake(
        "series.yaml:6",
        "a condition needs exactly one of dispatch, declares, defines",
        "    message: one.md",
        "    only_where:\n      - {lacks: tint, reason: none}\n    message: one.md",
    ),
    "a replacement of a text that is not known": Mistake(
        "series.yaml:33",
        "a replacement names what it replaces",
        "      - kind: remove-python-entry\n",
        "      - {kind: replace-definition, path: ops/Tint.mm, fragment: tint_mps, definition: {function: shade_mps}}\n"
        "      - kind: remove-python-entry\n",
    ),
    "a digest that is none": Mistake(
        "series.yaml:33",
        "a text that may go is named by its digest",
        "      - kind: remove-python-entry\n",
        "      - {kind: remove-unused-definition, path: ops/Tint.mm, definition: {function: f}, replaces: [md5:0]}\n"
        "      - kind: remove-python-entry\n",
    ),
    "an unclosed fragment": Mistake(
        "overlay/ops/Tint.mm:2",
        "fragment 'tint_mps' is never closed",
        files={"overlay/ops/Tint.mm": b"\n// fragment: tint_mps\nvoid a();\n"},
    ),
    "a fragment in a fragment": Mistake(
        "overlay/ops/Tint.mm:3",
        "is not closed before the next one",
        files={"overlay/ops/Tint.mm": b"// fragment: tint_mps\nvoid a();\n// fragment: b\n"},
    ),
    "an end without a fragment": Mistake(
        "overlay/ops/Tint.mm:1",
        "'end fragment' without a fragment",
        files={"overlay/ops/Tint.mm": b"// end fragment\n"},
    ),
    "two fragments of one name": Mistake(
        "overlay/ops/Tint.mm:4",
        "two fragments are called 'tint_mps'",
        files={"overlay/ops/Tint.mm": b"// fragment: tint_mps\nint a;\n// end fragment\n" * 2},
    ),
    "an empty fragment": Mistake(
        "overlay/ops/Tint.mm:1",
        "fragment 'tint_mps' is empty",
        files={"overlay/ops/Tint.mm": b"// fragment: tint_mps\n\n// end fragment\n"},
    ),
    "a created file with markers": Mistake(
        "series.yaml:17",
        "has fragment markers",
        files={"overlay/kernels/Tint.metal": FILES["overlay/ops/Tint.mm"].encode()},
    ),
    "an overlay file that is a link": Mistake(
        "series.yaml:17", "symbolic link", act=link("overlay/kernels/Tint.metal", "x")
    ),
    "an overlay folder that is a link": Mistake(
        "series.yaml:17", "symbolic link", act=link("overlay/kernels", "kernels")
    ),
    "an overlay that is a link": Mistake("overlay", "no symbolic link", act=link("overlay", "overlay")),
    "no overlay": Mistake("overlay", "the series has no overlay; expected a folder", act=without_overlay),
    "an overlay file that no edit names": Mistake(
        "overlay/ops/Tnt.mm",
        "no edit names; expected an edit of ops/Tint.mm",
        files={"overlay/ops/Tnt.mm": b"int a;\n"},
    ),
    "a fragment that no edit places": Mistake(
        "overlay/ops/Tint.mm:5",
        "no edit places fragment 'tint_cpu'; found edits for tint_mps",
        files={
            "overlay/ops/Tint.mm": FILES["overlay/ops/Tint.mm"].encode()
            + b"// fragment: tint_cpu\nint a;\n// end fragment\n"
        },
    ),
    "ops without the op that gets a dispatch entry": Mistake(
        "series.yaml:3",
        "change 'one' adds a dispatch entry of tint, and its 'ops' do not have it; expected tint, found tnit",
        "ops: [tint]",
        "ops: [tnit]",
    ),
    "a message that is a link": Mistake("series.yaml:5", "is a symbolic link", act=link("one.md", "x")),
    "a manifest that is a link": Mistake(
        "series.yaml", "the manifest is a symbolic link", act=link("series.yaml", "x")
    ),
    "a message with the line ends of another system": Mistake(
        "one.md:2", "the message 'one.md' has lines that end in CR LF", files={"one.md": b"Adds\none.\r\n"}
    ),
    "a whole overlay file with the line ends of another system": Mistake(
        "overlay/kernels/Tint.metal:1",
        "the overlay file has lines that end in CR LF",
        files={"overlay/kernels/Tint.metal": b"int tint;\r\n"},
    ),
    "a fragment with the line ends of another system": Mistake(
        "overlay/ops/Tint.mm:1",
        "the overlay file has lines that end in CR LF",
        files={"overlay/ops/Tint.mm": FILES["overlay/ops/Tint.mm"].replace("\n", "\r\n").encode()},
    ),
    "a manifest with the line ends of another system": Mistake(
        "series.yaml:1",
        "the manifest has lines that end in CR LF",
        files={"series.yaml": MANIFEST.replace("\n", "\r\n").encode()},
    ),
    "an empty manifest": Mistake("series.yaml:1", "the manifest is empty", files={"series.yaml": b""}),
    "a manifest of comments": Mistake("series.yaml:1", "the manifest is empty", files={"series.yaml": b"# nothing\n"}),
    "a manifest that is a list": Mistake(
        "series.yaml:1", "the series must be a mapping", files={"series.yaml": b"- a\n"}
    ),
    "a manifest that is not UTF-8": Mistake(
        "series.yaml:2", "the manifest is not UTF-8", files={"series.yaml": b"format: 1\n# \xff\n"}
    ),
    "a manifest with a control character": Mistake(
        "series.yaml:2", "not YAML", files={"series.yaml": b"format: 1\nid: \x01\n"}
    ),
    "an unclosed quote": Mistake("series.yaml:36", "not YAML", "'\"tint\"'", '\'"tint"'),
    "a tab": Mistake("series.yaml:5", "not YAML", "    message: one.md", "\tmessage: one.md"),
    "two documents": Mistake("series.yaml:37", "not YAML", MANIFEST, MANIFEST + "---\nformat: 1\n"),
    "an unknown alias": Mistake("series.yaml:6", "not YAML", "[tint]", "*missing"),
    "changes that are a mapping": Mistake(
        "series.yaml:2", "'changes' must be a list", MANIFEST[MANIFEST.index("changes:") :], "changes: {id: one}\n"
    ),
    "no changes": Mistake(
        "series.yaml:2",
        "'changes' must be a list with at least one entry; found an empty list",
        MANIFEST[MANIFEST.index("changes:") :],
        "changes: []\n",
    ),
    "a change that is a text": Mistake(
        "series.yaml:3", "a change must be a mapping", MANIFEST[MANIFEST.index("  - id: one") :], "  - one\n"
    ),
    "ops that are a text": Mistake("series.yaml:6", "'ops' must be a list of texts", "[tint]", "tint"),
    "ops with a mapping": Mistake("series.yaml:6", "'ops' must be a list of texts", "[tint]", "[{tint: 1}]"),
    "a title that is a list": Mistake("series.yaml:4", "'title' must be a text", '"[MPS] One"', "[MPS]"),
    "a title that is empty": Mistake("series.yaml:4", "'title' must be a text", '"[MPS] One"', '""'),
    "an anchor that is a text": Mistake(
        "series.yaml:21", "'after' must be a mapping", "{function: shade_mps}", "shade_mps"
    ),
    "an anchor of two kinds": Mistake(
        "series.yaml:21", "needs exactly one of", "{function: shade_mps}", "{function: shade_mps, struct: A}"
    ),
    "an anchor of no kind": Mistake("series.yaml:21", "needs exactly one of", "{function: shade_mps}", "{in: at}"),
    "no place": Mistake(
        "series.yaml:18", "needs exactly one of after, before", "        after: {function: shade_mps}\n", ""
    ),
    "two places": Mistake(
        "series.yaml:18",
        "needs exactly one of",
        "        after: {function: shade_mps}\n",
        "        after: {function: a}\n        before: {function: a}\n",
    ),
    "matches that are no number": Mistake(
        "series.yaml:21", "'matches' must be a whole number", "{function: shade_mps}", "{function: a, matches: many}"
    ),
    "matches of zero": Mistake(
        "series.yaml:21", "'matches' must be a whole number", "{function: shade_mps}", "{function: a, matches: 0}"
    ),
    "a pick that is none": Mistake(
        "series.yaml:21", "'pick' must be first or last", "{function: shade_mps}", "{function: a, pick: middle}"
    ),
    "a flag that is none": Mistake(
        "series.yaml:37",
        "'with_comment' must be true or false",
        "        entry: '\"tint\"'\n",
        "        entry: '\"tint\"'\n        with_comment: maybe\n",
    ),
    "an entry that is no Python": Mistake(
        "series.yaml:36", "'entry' is not one Python expression", "'\"tint\"'", "'\"tint'"
    ),
    "an entry that is two": Mistake(
        "series.yaml:36", "'entry' is not one Python expression", "'\"tint\"'", '\'"a", "b"\''
    ),
    "a call without an argument": Mistake(
        "series.yaml:35", "needs the key 'argument'", "{assign: NAMES}", "{call: OpInfo}"
    ),
    "a fragment in an unknown kind of file": Mistake(
        "series.yaml:19",
        "fragments cannot be placed in",
        "path: ops/Tint.mm\n        fragment",
        "path: ops/Tint.txt\n        fragment",
        files={"overlay/ops/Tint.txt": FILES["overlay/ops/Tint.mm"].encode(), "overlay/ops/Tint.mm": None},
    ),
    "a marker without a path": Mistake(
        "series.yaml:30",
        "an upstream marker needs the key 'path'",
        "      - defines: tint_twice\n        path: ops/Tint.mm\n",
        "      - defines: tint_twice\n",
    ),
    "a requirement without a reason": Mistake(
        "series.yaml:27", "a requirement needs the key 'reason'", "        reason: the host function\n", ""
    ),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "paint", {name: text.encode() for name, text in FILES.items()})
    return tmp_path / "paint"


def write(folder: Path, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def make(folder: Path, mistake: Mistake) -> None:
    if mistake.old:
        assert mistake.old in MANIFEST
        (folder / "series.yaml").write_text(MANIFEST.replace(mistake.old, mistake.new, 1))
    for name, content in mistake.files.items():
        if content is None:
            (folder / name).unlink()
        else:
            write(folder, {name: content})
    if mistake.act:
        mistake.act(folder)


def test_the_right_manifest_loads(folder: Path) -> None:
    series = load_series(str(folder))
    assert (series.name, [change.id for change in series.changes]) == ("paint", ["one", "two"])
    assert [edit.kind for edit in series.changes[0].edits] == ["add-dispatch-key", "create-file", "place-fragment"]
    assert series.changes[1].edits[0].where == f"{folder}/series.yaml:33"
    assert series.ops == ("tint",)
    assert series.changes[1].body == "Adds two.\n"


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES.keys())
def test_a_mistake_is_one_clear_error_with_file_and_line(folder: Path, mistake: Mistake) -> None:
    make(folder, mistake)
    with pytest.raises(ManifestError) as caught:
        load_series(str(folder))
    error = caught.value
    assert error.where == f"{folder}/{mistake.where}"
    assert mistake.problem in str(error)
    assert "\n" not in str(error).replace(mistake.new, "")
    assert error.exit_code is ExitCode.USAGE


def test_the_command_ends_with_status_2_and_one_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make(folder, MISTAKES["a duplicate id"])
    with pytest.raises(SystemExit) as ended:
        main(["--onto", "main", "--series", str(folder)])
    assert ended.value.code == 2
    said = capsys.readouterr()
    assert said.out == ""
    complaint = f"{folder}/series.yaml:22: two changes have the id 'one'; found also line 3"
    assert said.err == f"apply-stack: {complaint}; see docs/reference/manifest.md\n"


INDEPENDENT = {
    ("id: one", "id: One!"): ["'One!' cannot be an id"],
    ("    message: one.md", "    mesage: one.md"): [
        "a change needs the key 'message'",
        "unknown key 'mesage' in a change",
    ],
    ("ops: [tint]", "ops: tint"): ["'ops' must be a list of texts"],
    ("op: tint", "opp: tint"): ["an edit needs the key 'op'", "unknown key 'opp' in an edit"],
    ("kernels/Tint.metal", "../Tint.metal"): ["the path '../Tint.metal' leaves the tree"],
    ("fragment: tint_mps", "fragment: tint_cpu"): ["the overlay file overlay/ops/Tint.mm has no fragment 'tint_cpu'"],
    ("{function: shade_mps}", "{function: f, matches: 0, pick: middle}"): [
        "'matches' must be a whole number from 1",
        "'pick' must be first or last",
    ],
    ("        reason: the host function\n", ""): ["a requirement needs the key 'reason'"],
    ("entry: '\"tint\"'", "entry: '\"tint'\n        with_comment: maybe\n        other: 1"): [
        "'entry' is not one Python expression",
        "'with_comment' must be true or false",
        "unknown key 'other' in an edit",
    ],
}
"""Mistakes, as a text of the manifest and what it becomes, and what is told of each whatever else is wrong."""


def with_mistakes(mistakes: Iterable[tuple[str, str]]) -> str:
    text = MANIFEST
    for old, new in mistakes:
        assert old in text
        text = text.replace(old, new, 1)
    return text


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(mistakes=st.sets(st.sampled_from(list(INDEPENDENT)), min_size=1))
def test_of_any_mistakes_each_is_told_and_nothing_else(folder: Path, mistakes: set[tuple[str, str]]) -> None:
    (folder / "series.yaml").write_text(with_mistakes(one for one in INDEPENDENT if one in mistakes))
    with pytest.raises(ManifestError) as caught:
        load_series(str(folder))
    told = [error.problem.replace(f"{folder}/", "") for error in caught.value.each()]
    assert sorted(told) == sorted(problem for one in mistakes for problem in INDEPENDENT[one])


def test_all_mistakes_come_at_once_in_the_order_of_the_lines(folder: Path) -> None:
    (folder / "series.yaml").write_text(with_mistakes(INDEPENDENT) + "extra: 1\n")
    (folder / "two.md").write_bytes(b"\n")
    with pytest.raises(ManifestErrors) as caught:
        load_series(str(folder))
    told = [(error.where.removeprefix(f"{folder}/"), error.problem) for error in caught.value.each()]
    assert told == [
        ("series.yaml:3", "'One!' cannot be an id"),
        ("series.yaml:3", "a change needs the key 'message'"),
        ("series.yaml:5", "unknown key 'mesage' in a change"),
        ("series.yaml:6", "'ops' must be a list of texts"),
        ("series.yaml:11", "an edit needs the key 'op'"),
        ("series.yaml:13", "unknown key 'opp' in an edit"),
        ("series.yaml:17", "the path '../Tint.metal' leaves the tree"),
        ("series.yaml:20", f"the overlay file {folder}/overlay/ops/Tint.mm has no fragment 'tint_cpu'"),
        ("series.yaml:21", "'matches' must be a whole number from 1"),
        ("series.yaml:21", "'pick' must be first or last"),
        ("series.yaml:27", "a requirement needs the key 'reason'"),
        ("series.yaml:35", "'entry' is not one Python expression"),
        ("series.yaml:36", "'with_comment' must be true or false"),
        ("series.yaml:37", "unknown key 'other' in an edit"),
        ("series.yaml:38", "unknown key 'extra' in the series"),
        ("two.md:1", "the message is empty"),
    ]
    assert caught.value.exit_code is ExitCode.USAGE


def test_the_command_prints_a_line_for_each_and_lists_them_as_json(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "series.yaml").write_text(MANIFEST.replace("ops: [tint]", "ops: tint") + "extra: 1\n")
    with pytest.raises(SystemExit) as ended:
        main(["--onto", "main", "--series", str(folder), "--json"])
    assert ended.value.code == 2
    said = capsys.readouterr()
    assert said.err.splitlines() == [
        (
            f"apply-stack: {folder}/series.yaml:6: 'ops' must be a list of texts; found 'tint'; "
            "see docs/reference/manifest.md"
        ),
        (
            f"apply-stack: {folder}/series.yaml:37: unknown key 'extra' in the series; "
            "expected one of bases, changes, format; see docs/reference/manifest.md"
        ),
    ]
    error = document(said.out)["error"]
    assert (error["where"], [one["where"].rpartition(":")[2] for one in error["errors"]]) == (
        f"{folder}/series.yaml:6",
        ["6", "37"],
    )


def test_a_readme_in_the_overlay_and_hidden_files_are_context(folder: Path) -> None:
    write(folder / "overlay", {"README.md": b"What this is.\n", "ops/README": b"More.\n", ".clang-format": b"{}\n"})
    assert len(load_series(str(folder)).changes) == 2


def test_a_series_in_a_folder_of_several_takes_the_overlay_beside_it(tmp_path: Path) -> None:
    files = {name.replace("overlay/", ""): text.encode() for name, text in FILES.items() if "overlay" in name}
    write(tmp_path / "aten_overlay", files)
    for name in ("paint", "other"):
        write(tmp_path / "patches" / name, {n: text.encode() for n, text in FILES.items() if "overlay" not in n})
    write(tmp_path / "aten_overlay", {"ops/Mine.mm": b"int a;\n"})
    series = load_series(str(tmp_path / "patches" / "paint"))
    assert series.overlay.root == tmp_path / "aten_overlay"
    shutil.rmtree(tmp_path / "patches" / "other")
    with pytest.raises(ManifestError, match="a file that no edit names"):
        load_series(str(tmp_path / "patches" / "paint"))


def test_everything_the_overlay_holds_is_read_on_load_and_not_later(folder: Path) -> None:
    series = load_series(str(folder))
    for file in (folder / "overlay").rglob("*.m*"):
        file.unlink()
    create, place = series.changes[0].edits[1:]
    assert b"int tint;" in vars(create)["content"]
    assert vars(place)["fragment"].text == b"void tint_mps() {}\n"


def test_a_series_that_does_not_exist_is_a_usage_error_that_lists_those_that_do(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="grid_sampler") as caught:
        load_series(str(tmp_path / "none"))
    assert caught.value.exit_code is ExitCode.USAGE


def test_the_series_of_the_distribution_loads() -> None:
    assert load_series("grid_sampler").changes[0].id == "grid_sampler_2d_backward"


def test_a_series_with_a_name_too_long_for_a_file_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="no series 'nnn"):
        load_series("n" * 5000)
