from __future__ import annotations

import dataclasses
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from patchstack.errors import TreeError, UsageError
from patchstack.reference import build_reference
from patchstack.reference.build import build_spec
from privileges import run_obeying_modes

from .conftest import EXPECTED, TinyRelease

STAND_IN = "aten/src/ATen/native/mps/kernels/Tiny.metal"


def git(path: Path, *arguments: str) -> bytes:
    return subprocess.run(["git", *arguments], cwd=path, check=True, capture_output=True).stdout


def contents(path: Path, commit: str) -> dict[str, bytes]:
    names = git(path, "ls-tree", "-r", "-z", "--name-only", commit).decode().split("\0")[:-1]
    return {name: git(path, "cat-file", "blob", f"{commit}:{name}") for name in names}


def test_git_holds_exactly_the_releases_files_byte_for_byte(tiny: TinyRelease) -> None:
    tree = build_spec(tiny.spec, tiny.surroundings)
    assert contents(tree.path, tree.commit) == EXPECTED
    assert (tree.version, tree.stand_ins, tree.release_commit) == ("9.9.0", (), tree.commit)


def test_main_is_checked_out_clean_with_the_bytes_that_git_holds(tiny: TinyRelease) -> None:
    tiny.add_stand_in(".gitattributes", b"*.py text eol=crlf\n")
    tree = build_spec(tiny.spec, tiny.surroundings)
    assert git(tree.path, "symbolic-ref", "HEAD") == b"refs/heads/main\n"
    assert git(tree.path, "status", "--porcelain") == b""
    assert {name: (tree.path / name).read_bytes() for name in EXPECTED} == EXPECTED


def test_stand_ins_come_in_a_second_commit_that_says_they_are_not_pytorchs(tiny: TinyRelease) -> None:
    tiny.add_stand_in(STAND_IN, b"kernel\n")
    tree = build_spec(tiny.spec, tiny.surroundings)
    assert tree.stand_ins == (STAND_IN,)
    assert git(tree.path, "rev-list", "main").decode().split() == [tree.commit, tree.release_commit]
    assert git(tree.path, "diff", "--name-status", "main~", "main").decode() == f"A\t{STAND_IN}\n"
    message = git(tree.path, "log", "-1", "--format=%B", "main").decode()
    assert "NOT PyTorch's text" in message
    assert f"{tiny.spec.released:%B %Y}" in message
    assert STAND_IN in message
    assert any("not PyTorch's text" in note and STAND_IN in note for note in tree.notes)


def test_a_stand_in_never_replaces_a_file_of_the_release(tiny: TinyRelease) -> None:
    tiny.add_stand_in("torchgen/model.py", b"ours\n")
    with pytest.raises(TreeError, match=r"torchgen/model.py: a stand-in would replace"):
        build_spec(tiny.spec, tiny.surroundings)
    assert list((tiny.cache / "reference").glob("*-9.9-*")) == []


def test_two_caches_and_a_hostile_configuration_give_the_same_commit_ids(
    tiny: TinyRelease, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny.add_stand_in(STAND_IN, b"kernel\r\n")
    first = build_spec(tiny.spec, tiny.surroundings)
    hook = tmp_path / "hooks" / "reference-transaction"
    hook.parent.mkdir()
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    hostile = tmp_path / "gitconfig"
    hostile.write_text(
        f"[core]\nautocrlf = true\nhooksPath = {hook.parent}\n[commit]\ngpgsign = true\n"
        "[user]\nuseConfigOnly = true\n[init]\ndefaultBranch = trunk\n[safe]\ndirectory = *\n"
    )
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(hostile))
    monkeypatch.setenv("GIT_DEFAULT_HASH", "sha256")
    monkeypatch.setenv("GIT_AUTHOR_DATE", "2001-01-01T00:00:00Z")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    second = build_spec(tiny.spec, dataclasses.replace(tiny.surroundings, cache=tmp_path / "other cache"))
    assert (second.commit, second.release_commit) == (first.commit, first.release_commit)
    assert second.path != first.path
    assert (second.path / STAND_IN).read_bytes() == b"kernel\r\n"


def test_dates_and_author_are_the_releases_not_the_machines(tiny: TinyRelease) -> None:
    tree = build_spec(tiny.spec, tiny.surroundings)
    shown = git(tree.path, "log", "-1", "--format=%aI %cI %ae").decode().split()
    assert shown == ["2030-01-02T12:00:00+00:00"] * 2 + ["reference@patchstack.invalid"]


def test_a_warm_call_downloads_and_writes_nothing(tiny: TinyRelease) -> None:
    first = build_spec(tiny.spec, tiny.surroundings)
    said: list[str] = []
    tiny.wheel.unlink()
    assert build_spec(tiny.spec, tiny.surroundings, progress=said.append, offline=True) == first
    assert (said, tiny.fetched) == ([], 1)


def test_a_packed_main_is_recognised(tiny: TinyRelease) -> None:
    tree = build_spec(tiny.spec, tiny.surroundings)
    git(tree.path, "pack-refs", "--all")
    assert build_spec(tiny.spec, tiny.surroundings) == tree


def test_changed_stand_ins_give_a_new_tree_and_leave_the_old_one_alone(tiny: TinyRelease) -> None:
    tiny.add_stand_in(STAND_IN, b"one\n")
    old = build_spec(tiny.spec, tiny.surroundings)
    tiny.add_stand_in(STAND_IN, b"two\n")
    new = build_spec(tiny.spec, tiny.surroundings)
    assert new.path != old.path
    assert (new.path / STAND_IN).read_bytes() == b"two\n"
    assert old.path.is_dir()
    assert tiny.fetched == 1


def test_a_tree_that_nobody_used_for_two_weeks_goes_when_its_successor_is_built(tiny: TinyRelease) -> None:
    tiny.add_stand_in(STAND_IN, b"one\n")
    old = build_spec(tiny.spec, tiny.surroundings)
    os.utime(old.path, (0, 0))
    tiny.add_stand_in(STAND_IN, b"two\n")
    build_spec(tiny.spec, tiny.surroundings)
    assert not old.path.exists()


def test_a_moved_main_is_refused_with_the_command_that_puts_it_back(tiny: TinyRelease) -> None:
    tiny.add_stand_in(STAND_IN, b"one\n")
    tree = build_spec(tiny.spec, tiny.surroundings)
    git(tree.path, "update-ref", "refs/heads/main", tree.release_commit)
    with pytest.raises(TreeError) as caught:
        build_spec(tiny.spec, tiny.surroundings)
    assert (caught.value.expected, caught.value.found) == (tree.commit, tree.release_commit)
    subprocess.run(caught.value.next_command, shell=True, check=True)
    assert build_spec(tiny.spec, tiny.surroundings) == tree


def test_other_branches_of_the_tree_are_the_users_and_stay(tiny: TinyRelease) -> None:
    tree = build_spec(tiny.spec, tiny.surroundings)
    git(tree.path, "branch", "stack/tiny")
    assert build_spec(tiny.spec, tiny.surroundings) == tree
    assert git(tree.path, "rev-parse", "stack/tiny").decode().strip() == tree.commit


def test_an_unknown_name_lists_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"newest: no such reference tree; expected one of 2\.11"):
        build_reference("newest", cache=tmp_path)


def test_the_settings_of_the_linters_come_with_the_stand_ins_of_any_tree(tiny: TinyRelease) -> None:
    settings = tiny.surroundings.stand_ins / "settings"
    settings.mkdir(parents=True)
    (settings / ".clang-format").write_bytes(b"ColumnLimit: 80\n")
    without = build_spec(tiny.spec, tiny.surroundings)
    assert without.stand_ins == ()
    tiny.add_stand_in(STAND_IN, b"kernel\n")
    tree = build_spec(tiny.spec, tiny.surroundings)
    assert tree.stand_ins == (".clang-format", STAND_IN)
    assert contents(tree.path, tree.commit)[".clang-format"] == b"ColumnLimit: 80\n"
    (settings / ".clang-format").write_bytes(b"ColumnLimit: 120\n")
    assert build_spec(tiny.spec, tiny.surroundings).path != tree.path, (
        "a cached tree with other settings is not this one"
    )


def read_only(folder: Path) -> None:
    """As a cache is for everybody but its owner."""
    for path in (folder, *folder.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o555 if path.is_dir() else 0o444)


FIND = """
import pickle, sys
from patchstack.errors import TreeError
from patchstack.reference.build import Surroundings, build_spec
spec, cache, stand_ins = pickle.load(sys.stdin.buffer)
try:
    print(build_spec(spec, Surroundings(cache, stand_ins), offline=True).commit)
except TreeError as error:
    print(error)
"""


def found_in_a_cache_of_another_user(tiny: TinyRelease) -> str:
    read_only(tiny.cache)
    what = pickle.dumps((tiny.spec, tiny.cache, tiny.surroundings.stand_ins))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = run_obeying_modes([sys.executable, "-c", FIND], env=environment, stdin=what)
    assert done.stderr == ""
    return done.stdout.strip()


def test_a_tree_in_a_cache_that_may_not_be_written_is_used(tiny: TinyRelease) -> None:
    tree = build_spec(tiny.spec, tiny.surroundings)
    assert found_in_a_cache_of_another_user(tiny) == tree.commit


def test_a_tree_that_would_have_to_be_built_there_names_the_variable_to_set(tiny: TinyRelease) -> None:
    place = tiny.cache / "downloads" / tiny.wheel.name
    place.parent.mkdir(parents=True)
    place.write_bytes(tiny.wheel.read_bytes())
    assert found_in_a_cache_of_another_user(tiny).endswith(
        ": the cache cannot be written; found Permission denied (next: export PATCHSTACK_CACHE=FOLDER, "
        "a folder of your own)"
    )
