"""Git commands run in an environment of our own making and fail with the line that says why."""

from __future__ import annotations

from pathlib import Path

import pytest

from patchstack.tree.git.process import GitCommandError, LineServer, git_environment, run_git

REDIRECTING = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_NAMESPACE",
    "GIT_GRAFT_FILE",
    "GIT_CONFIG",
)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("HOME", str(tmp_path))
    run_git(tmp_path, ["init", "-q", "-b", "main", "repository"])
    return tmp_path / "repository"


@pytest.mark.parametrize("argument", ["a\0b", "a\ud800b"])
def test_an_argument_that_no_command_line_can_carry_fails_like_a_command(repository: Path, argument: str) -> None:
    with pytest.raises(GitCommandError) as caught:
        run_git(repository, ["show-ref", argument])
    assert caught.value.reason.startswith("fatal: not an argument for git")


@pytest.mark.parametrize("name", [*REDIRECTING, "GIT_CONFIG", "GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"])
def test_what_points_git_elsewhere_or_sets_dates_is_dropped(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "somewhere")
    assert name not in git_environment()
    assert git_environment({name: "here"})[name] == "here"


@pytest.mark.parametrize("name", ["GIT_AUTHOR_NAME", "GIT_CONFIG_COUNT", "HOME", "GNUPGHOME", "SSH_AUTH_SOCK"])
def test_what_the_user_sets_otherwise_is_kept(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "mine")
    assert git_environment()[name] == "mine"


@pytest.mark.parametrize("name", ["GIT_TERMINAL_PROMPT", "GIT_OPTIONAL_LOCKS", "GIT_NO_LAZY_FETCH"])
def test_prompts_index_refreshes_and_fetches_are_off(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "something else")
    assert git_environment()[name] in ("0", "1")
    assert git_environment()["GIT_ALLOW_PROTOCOL"] == "none"


def test_a_failure_carries_the_command_the_status_and_the_reason(repository: Path) -> None:
    with pytest.raises(GitCommandError) as caught:
        run_git(repository, ["cat-file", "commit", "main"])
    assert caught.value.command == ("cat-file", "commit", "main")
    assert caught.value.status == 128
    assert caught.value.reason == "fatal: Not a valid object name main"
    assert "git cat-file commit main ended with status 128" in str(caught.value)


@pytest.mark.parametrize(
    ("stderr", "reason"),
    [
        ("hint: x\nerror: why\nhint: y\n", "error: why"),
        ("no prefix\nsecond\n", "no prefix"),
        ("\n \n", "git frob ended with status 7"),
        ("", "git frob ended with status 7"),
    ],
)
def test_the_reason_is_the_line_that_says_why(stderr: str, reason: str) -> None:
    assert GitCommandError(("frob",), 7, stderr).reason == reason


UNKNOWN = "warning: unknown repository extension{} found:\n\t{}\nfatal: unknown repository extension{} found:\n\n\t{}\n"
DUBIOUS = (
    "fatal: detected dubious ownership in repository at '/the tree'\n"
    "To add an exception for this directory, call:\n\n"
    "\tgit config --global --add safe.directory '/the tree'\n"
)


@pytest.mark.parametrize(
    ("stderr", "reason", "remedy"),
    [
        (
            DUBIOUS,
            "fatal: detected dubious ownership in repository at '/the tree'",
            "git config --global --add safe.directory '/the tree'",
        ),
        (
            UNKNOWN.format("", "foo", "", "foo"),
            "unknown repository extension extensions.foo",
            "use the git that made it",
        ),
        (
            UNKNOWN.format("", "refstorage", "", "refstorage"),
            "unknown repository extension extensions.refstorage",
            "install git 2.45 or newer",
        ),
        (
            UNKNOWN.format("s", "relativeworktrees\n\trefstorage", "s", "relativeworktrees\n\trefstorage"),
            "unknown repository extension extensions.relativeworktrees, extensions.refstorage",
            "install git 2.48 or newer",
        ),
        ("fatal: not a git repository\n", "fatal: not a git repository", ""),
    ],
)
def test_a_refusal_of_a_repository_keeps_its_remedy(stderr: str, reason: str, remedy: str) -> None:
    error = GitCommandError(("rev-parse",), 128, stderr)
    assert (error.reason, error.remedy) == (reason, remedy)


def test_standard_input_is_empty_where_none_is_given(repository: Path) -> None:
    assert run_git(repository, ["hash-object", "--stdin"]) == b"e69de29bb2d1d6434b8b29ae775ad8c2e48c5391\n"
    assert run_git(repository, ["hash-object", "--stdin"], stdin=b"x") != b"e69de29bb2d1d6434b8b29ae775ad8c2e48c5391\n"


def test_a_server_answers_request_by_request_and_starts_again_after_close(repository: Path) -> None:
    server = LineServer(repository, ["cat-file", "--batch-check"])
    for _ in range(2):
        server.send(b"main\n")
        assert server.read_line() == b"main missing"
        server.close()


def test_a_server_that_ends_says_why(repository: Path) -> None:
    server = LineServer(repository, ["cat-file", "--batch", "--no-such-option"])
    with pytest.raises(GitCommandError, match="no-such-option"):
        server.read_line()
    server.close()


def test_a_request_to_a_server_that_has_ended_says_why(repository: Path) -> None:
    server = LineServer(repository, ["cat-file", "--batch", "--no-such-option"])
    with pytest.raises(GitCommandError, match="no-such-option"):
        server.send(b"main\n" * 1_000_000)  # more than a pipe takes before git is gone
    server.close()


def test_a_server_that_ends_in_the_middle_of_an_answer_says_so(repository: Path) -> None:
    server = LineServer(repository, ["version"])
    with pytest.raises(GitCommandError) as caught:
        server.read_exactly(1000)
    assert caught.value.status == 0


def test_a_server_that_complains_a_lot_does_not_block(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More than a pipe holds, on a stream that is read only after a failure."""
    monkeypatch.setenv("GIT_TRACE", "1")
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "alias.noisy")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "!head -c 300000 /dev/zero >&2; read line; echo answer")
    server = LineServer(repository, ["noisy"])
    server.send(b"question\n")
    assert server.read_line() == b"answer"
    server.close()


def test_a_server_answers_at_once_even_where_the_user_lets_git_buffer(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_FLUSH", "0")
    assert git_environment()["GIT_FLUSH"] == "1"
    (repository / "file").write_text("x")
    server = LineServer(repository, ["hash-object", "--no-filters", "--stdin-paths"])
    server.send(b"file\n")
    assert len(server.read_line()) == 40
    server.close()
