"""A mailbox series applies with ``git am --keep-non-patch`` to the same trees and messages, whatever is configured."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from patchstack.errors import ExitCode, ManifestError, PatchstackError, TreeError, UsageError
from patchstack.messages import CoAuthor, GhstackTrailers, Message, check_series, mailbox
from patchstack.messages.mailbox import format_patches
from patchstack.tree.git import Repository

from .conftest import Sandbox, new_sandbox

Files = Mapping[str, tuple[str, bytes]]
PLAIN, EXECUTABLE, LINK = "100644", "100755", "120000"

STEPS: tuple[tuple[Message, Files], ...] = (
    (
        Message("Base"),
        {
            "unix.mm": (PLAIN, b"one\ntwo\nthree\n"),
            "dos file.txt": (PLAIN, b"one\r\ntwo\r\nthree\r\n"),
            "no_newline": (PLAIN, b"one\ntwo"),
            "picture.bin": (PLAIN, bytes(range(256))),
            "script": (PLAIN, b"#!/bin/sh\n"),
            "latin": (PLAIN, b"caf\xe9\n"),
            "gone": (PLAIN, b"gone\n"),
            ".gitattributes": (PLAIN, b"*.mm diff=objc\n"),
        },
    ),
    (
        Message("[MPS] Größe: change text files ✓ " + "ü" * 30, "It is needed.\n\n- größer\n- > quoted\n"),
        {
            "unix.mm": (PLAIN, b"one\n-- \nFrom x Mon Sep 17 00:00:00 2001\nthree\n"),
            "dos file.txt": (PLAIN, b"one\r\nzwei\r\nthree\r\nfour\r\n"),
            "no_newline": (PLAIN, b"one\nzwei"),
            "lone": (PLAIN, b"a return and no line feed at the end\r"),
        },
    ),
    (
        Message(
            "[MPS][BE] Change the rest",
            "",
            (CoAuthor("Ada Núñez", "ada@example.com"),),
            GhstackTrailers(
                ("ghstack-source-id: " + "e" * 40, "Pull-Request: https://github.com/pytorch/pytorch/pull/7")
            ),
        ),
        {
            "picture.bin": (PLAIN, bytes(range(255, -1, -1))),
            "script": (EXECUTABLE, b"#!/bin/sh\n"),
            "latin": (PLAIN, b"caf\xe9s\n"),
            "link": (LINK, b"unix.mm"),
            'new [x]* "q" \\ü.txt': (PLAIN, b"mixed\r\nends\nhere\r\n"),
            "gone": (PLAIN, b""),
        },
    ),
)

# Settings that each change the output of format-patch, or what git am would read from it.
HOSTILE = {
    "format.signature": "me",
    "format.subjectPrefix": "RFC",
    "format.attach": "true",
    "format.coverLetter": "true",
    "format.thread": "deep",
    "format.suffix": ".txt",
    "format.signOff": "true",
    "format.headers": "Subject: other\\n",
    "format.to": "a@b.example",
    "format.from": "Someone <else@example.com>",
    "format.outputDirectory": "/nonexistent",
    "format.useAutoBase": "true",
    "format.noprefix": "true",
    "format.notes": "true",
    "format.numbered": "false",
    "format.pretty": "oneline",
    "diff.noprefix": "true",
    "diff.mnemonicPrefix": "true",
    "diff.external": "false",
    "diff.context": "0",
    "diff.interHunkContext": "9",
    "diff.renames": "copies",
    "diff.algorithm": "patience",
    "diff.orderFile": "/dev/null/none",
    "diff.submodule": "log",
    "diff.relative": "true",
    "diff.wsErrorHighlight": "all",
    "diff.suppressBlankEmpty": "true",
    "diff.objc.textconv": "tr a-z A-Z <",
    "diff.objc.binary": "true",
    "color.ui": "always",
    "color.diff": "always",
    "core.autocrlf": "true",
    "core.quotePath": "false",
    "core.pager": "false",
    "i18n.logOutputEncoding": "latin1",
    "log.showSignature": "true",
    "apply.whitespace": "fix",
    "mailinfo.scissors": "true",
    "commit.gpgSign": "true",
}


HOSTILE_ENVIRONMENT = {
    "GIT_CONFIG_GLOBAL": "{0}/global",
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "format.subjectPrefix",
    "GIT_CONFIG_VALUE_0": "OTHER",
    "GIT_CONFIG_PARAMETERS": "'format.attach'='true'",
    "GIT_EXTERNAL_DIFF": "false",
    "GIT_DIFF_OPTS": "--unified=0",
    "GIT_INDEX_FILE": "{0}/no-index",
    "GIT_DIR": "{0}/no-repository",
    "COLUMNS": "20",
}


def build(sandbox: Sandbox) -> list[str]:
    """The commits of STEPS; their ids, the base first."""
    files: dict[str, tuple[str, bytes]] = {}
    hashes: list[str] = []
    for message, changed in STEPS:
        files.update(changed)
        hashes.append(sandbox.commit(sandbox.tree(files), message.render(), *hashes[-1:]))
    sandbox.git("update-ref", "refs/heads/stack", hashes[-1])
    sandbox.git("update-ref", "refs/heads/base", hashes[0])
    return hashes


def history(sandbox: Sandbox, base: str, tip: str) -> list[tuple[str, str]]:
    """Tree and full message of every commit after ``base``, oldest first."""
    hashes = sandbox.line("rev-list", "--reverse", f"{base}..{tip}").split()
    return [
        (sandbox.line("rev-parse", f"{h}^{{tree}}"), sandbox.git("log", "-1", "--format=%B", h).decode())
        for h in hashes
    ]


def written(repository: Path, onto: str, tip: str, folder: Path) -> list[Path]:
    with Repository.open(repository) as opened:
        return format_patches(opened, onto, tip, folder)


def applied(sandbox: Sandbox, target: Path, patches: list[Path]) -> list[tuple[str, str]]:
    """What ``git am`` makes of the patches in a fresh clone at the base."""
    sandbox.git("clone", "-q", "--no-local", "--branch", "base", str(sandbox.path), str(target))
    clone = Sandbox(target)
    base = clone.line("rev-parse", "HEAD")
    clone.git("am", "-q", "--keep-non-patch", *(str(patch) for patch in patches))
    return history(clone, base, "HEAD")


def test_the_messages_of_the_example_pass_the_rules() -> None:
    assert [
        finding for finding in check_series([message for message, _ in STEPS[1:]]) if finding.rule != "title-length"
    ] == []


def test_git_am_gives_the_same_trees_and_messages(sandbox: Sandbox, tmp_path: Path) -> None:
    base, *_, tip = build(sandbox)
    patches = written(sandbox.path, "base", "stack", tmp_path / "out")
    assert [patch.name[:9] for patch in patches] == ["0001-MPS-", "0002-MPS-"]
    assert sorted(patches) == sorted((tmp_path / "out").iterdir())
    assert applied(sandbox, tmp_path / "clone", patches) == history(sandbox, base, tip)
    assert not list(tmp_path.glob(".out*"))


def test_the_users_settings_change_no_byte(sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build(sandbox)
    plain = written(sandbox.path, "base", "stack", tmp_path / "plain")
    for key, value in HOSTILE.items():
        sandbox.git("config", key, value)
        sandbox.git("config", "--file", str(tmp_path / "global"), key, value)
    attributes = sandbox.path / ".git" / "info" / "attributes"
    attributes.parent.mkdir(exist_ok=True)
    attributes.write_text("*.mm diff=objc\n")
    for name, value in HOSTILE_ENVIRONMENT.items():
        monkeypatch.setenv(name, value.format(tmp_path))
    hostile = written(sandbox.path, "base", "stack", tmp_path / "hostile")
    assert [patch.name for patch in hostile] == [patch.name for patch in plain]
    assert [patch.read_bytes() for patch in hostile] == [patch.read_bytes() for patch in plain]


def test_the_same_settings_do_spoil_a_bare_format_patch(sandbox: Sandbox, tmp_path: Path) -> None:
    """The seeded fault: one setting alone, and git am fails."""
    build(sandbox)
    target = tmp_path / "out"
    command = ["git", "-c", "diff.noprefix=true", "format-patch", "-q", "-o", str(target), "base..stack"]
    subprocess.run(command, cwd=sandbox.path, check=True)
    with pytest.raises(AssertionError, match="error: "):
        applied(sandbox, tmp_path / "clone", sorted(target.iterdir()))


def test_git_alone_would_lose_the_carriage_returns(sandbox: Sandbox, tmp_path: Path) -> None:
    """The reason for writing such files as binary patches: without it git am does not even apply."""
    build(sandbox)
    sandbox.git("format-patch", "-q", "-o", str(tmp_path / "out"), "base..stack")
    sandbox.git("clone", "-q", "--branch", "base", str(sandbox.path), str(tmp_path / "clone"))
    names = [str(path) for path in sorted((tmp_path / "out").iterdir())]
    done = subprocess.run(["git", "am", "-q", "--keep-non-patch", *names], cwd=tmp_path / "clone", capture_output=True)
    assert done.returncode != 0


def _bare(sandbox: Sandbox, target: Path) -> None:
    sandbox.git("clone", "-q", "--bare", str(sandbox.path), str(target))


def _shallow(sandbox: Sandbox, target: Path) -> None:
    sandbox.git("clone", "-q", "--depth=3", "--branch=stack", f"file://{sandbox.path}", str(target))


def _worktree(sandbox: Sandbox, target: Path) -> None:
    sandbox.git("worktree", "add", "-q", str(target), "stack")


@pytest.mark.parametrize("make", [_bare, _shallow, _worktree])
def test_any_kind_of_repository_gives_the_same_files(
    sandbox: Sandbox, tmp_path: Path, make: Callable[[Sandbox, Path], None]
) -> None:
    hashes = build(sandbox)
    make(sandbox, tmp_path / "ä : b")
    here = written(sandbox.path, hashes[0], hashes[-1], tmp_path / "here")
    there = written(tmp_path / "ä : b", hashes[0], hashes[-1], tmp_path / "there")
    assert [patch.read_bytes() for patch in here] == [patch.read_bytes() for patch in there]


def test_nothing_is_left_in_the_repository(sandbox: Sandbox, tmp_path: Path) -> None:
    def contents() -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in sandbox.path.rglob("*") if path.is_file()}

    build(sandbox)
    before = contents()
    written(sandbox.path, "base", "stack", tmp_path / "out")
    assert contents() == before


def test_an_earlier_series_is_replaced_and_other_files_are_not(sandbox: Sandbox, tmp_path: Path) -> None:
    first, second, third = build(sandbox)
    out = tmp_path / "out"
    assert len(written(sandbox.path, first, third, out)) == 2
    (patch,) = written(sandbox.path, second, third, out)
    assert list(out.iterdir()) == [patch]
    (out / "0002-mine.patch").write_text("From me\n\nhello\n")
    with pytest.raises(UsageError, match=r"files that no earlier run wrote.*0002-mine\.patch"):
        written(sandbox.path, first, third, out)
    assert len(list(out.iterdir())) == 2


def test_an_empty_folder_is_taken(sandbox: Sandbox, tmp_path: Path) -> None:
    build(sandbox)
    (tmp_path / "out").mkdir()
    assert len(written(sandbox.path, "base", "stack", tmp_path / "out")) == 2


def test_a_file_in_the_place_of_the_folder_is_an_error(sandbox: Sandbox, tmp_path: Path) -> None:
    build(sandbox)
    (tmp_path / "out").touch()
    with pytest.raises(UsageError, match="not a folder"):
        written(sandbox.path, "base", "stack", tmp_path / "out")
    with pytest.raises(UsageError, match="cannot be written"):
        written(sandbox.path, "base", "stack", tmp_path / "out" / "below")


def test_a_range_without_commits_or_with_unknown_ones_is_an_error(sandbox: Sandbox, tmp_path: Path) -> None:
    build(sandbox)
    with pytest.raises(UsageError, match="no commit to write"):
        written(sandbox.path, "stack", "stack", tmp_path / "out")
    with pytest.raises(UsageError, match="no such commit"):
        written(sandbox.path, "nowhere", "stack", tmp_path / "out")


def test_merges_empty_commits_and_forks_are_refused_and_nothing_is_written(sandbox: Sandbox, tmp_path: Path) -> None:
    base = sandbox.text_commit("one\n", "[MPS] Base\n")
    side = sandbox.text_commit("side\n", "[MPS] Side\n", base)
    tip = sandbox.text_commit("tip\n", "[MPS] Tip\n", base)
    merge = sandbox.text_commit("merge\n", "[MPS] Merge\n", tip, side)
    empty = sandbox.text_commit("one\n", "[MPS] Empty\n", base)
    for onto, commit, words in (
        (base, merge, "straight line"),
        (side, tip, "straight line"),
        (base, empty, "changes nothing"),
    ):
        with pytest.raises(TreeError, match=words):
            written(sandbox.path, onto, commit, tmp_path / "out")
    assert list(tmp_path.iterdir()) == [sandbox.path]


@pytest.mark.parametrize(
    "text",
    [
        "[MPS]: x\n",
        "[MPS] T\n\nbefore\n---\nafter\n",
        "[MPS] T\n\nFrom a Mon Sep 17 00:00:00 2001\nb\n",
        "[MPS] a  b\n",
    ],
)
def test_a_message_that_git_am_would_change_is_refused_and_nothing_is_written(
    sandbox: Sandbox, tmp_path: Path, text: str
) -> None:
    base = sandbox.text_commit("one\n", "Base\n")
    tip = sandbox.text_commit("two\n", text, base)
    with pytest.raises(ManifestError, match="git am would change the message") as caught:
        written(sandbox.path, base, tip, tmp_path / "out")
    assert caught.value.exit_code is ExitCode.USAGE
    assert not (tmp_path / "out").exists()


def test_reading_back_catches_a_patch_that_gives_another_tree(
    sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The seeded fault: leave out what protects the carriage returns."""
    build(sandbox)
    monkeypatch.setattr(mailbox, "_paths_git_am_would_damage", lambda *_: iter(()))
    with pytest.raises(TreeError, match=r"does not apply|another tree"):
        written(sandbox.path, "base", "stack", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_failed_run_leaves_the_earlier_series(
    sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(sandbox)
    before = [patch.read_bytes() for patch in written(sandbox.path, "base", "stack", tmp_path / "out")]
    monkeypatch.setattr(mailbox, "_paths_git_am_would_damage", lambda *_: iter(()))
    with pytest.raises(PatchstackError):
        written(sandbox.path, "base", "stack", tmp_path / "out")
    assert [path.read_bytes() for path in sorted((tmp_path / "out").iterdir())] == before


def test_two_repositories_with_the_same_stack_write_the_same_bytes(tmp_path: Path) -> None:
    contents = []
    for name in ("one", "two"):
        sandbox = new_sandbox(tmp_path / name)
        hashes = build(sandbox)
        patches = written(sandbox.path, hashes[0], hashes[-1], tmp_path / f"{name}-out")
        contents.append([patch.read_bytes() for patch in patches])
    assert contents[0] == contents[1]
