"""Situations in which the command stops, and what becomes of each thing that it advises when that is typed.

Advice is a list of alternatives, divided by ``, or``: a command (``git ...``, ``apply-stack ...``), options to add to a
command (``--branch NAME``), or options to leave out (``without --checkout``). Everything else is something for a person
to do, and is listed as such. ``NAME`` and the like are filled in as a person would.
"""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from checkouts import Checkout, Run
from checkouts.sources import HOST, LISTS, METAL, NATIVE_FUNCTIONS, OVERLAY, TESTS, TREE

Prepare = Callable[[Checkout], Sequence[str]]
NEXT = re.compile(r"\(next: (.*)\)$", re.MULTILINE)
HELPLESS = "no choice of changes by --only and --replace applies here"
SHOWS = ("branch -a", "branch --list", "log ", "status", "--help", "fsck", "diff ")
"""Commands that show something and change nothing."""

OTHER_FADE = b"""\
Tensor fade_mps(const Tensor& self, double amount) {
  return self * amount;
}

"""


def changed(path: str, *replacements: tuple[str, str]) -> str:
    text = TREE[path].decode()
    for old, new in replacements:
        assert old in text
        text = text.replace(old, new, 1)
    return text


@dataclass(frozen=True)
class Tried:
    """One piece of advice, typed.

    Attributes:
        advice: what was advised.
        typed: the commands that were typed, the last one the original with or without other options; empty where it is
            something for a person to do, or needs a network.
        run: how the last one ended.
        first: how the original had ended.
    """

    advice: str
    typed: tuple[str, ...]
    first: Run
    run: Run | None = None

    @property
    def helps(self) -> bool:
        """Whether there is nothing more to do."""
        return self.run is None or self.run.status == 0


def stop(checkout: Checkout, arguments: Sequence[str]) -> Run:
    """Run the command as a person would."""
    checkout.lab.start(arguments, cwd=checkout.path)
    return checkout.lab.finish()


def try_all(make: Callable[[], Checkout], prepare: Prepare) -> Iterator[Tried]:
    """Type each advice of a situation, in a checkout of its own."""
    checkout = make()
    arguments = list(prepare(checkout))
    first = stop(checkout, arguments)
    for number, advice in enumerate(advised(first)):
        if number:
            checkout = make()
            arguments = list(prepare(checkout))
            first = stop(checkout, arguments)
            advice = list(advised(first))[number]  # paths in it are those of this checkout
        yield type_in(checkout, arguments, first, advice)


def advised(run: Run) -> Iterator[str]:
    """Every alternative of everything that a run advises."""
    text = run.err if run.err.strip() else run.out
    for found in NEXT.finditer(text.rstrip()):
        for alternative in re.split(r",? or (?![^(]*\))|; ", found[1]):
            yield re.sub(r" \(.*\)$", "", alternative.strip().rstrip(","))


def type_in(checkout: Checkout, arguments: Sequence[str], first: Run, advice: str) -> Tried:
    """Type one alternative; after a command other than ours, the original again."""
    words = filled(checkout, advice)
    if words[:1] == ["apply-stack"]:
        return Tried(advice, (shlex.join(words),), first, stop(checkout, words[1:]))
    if words[:1] == ["git"]:
        done = subprocess.run(
            shlex.join(words).replace("'&&'", "&&"),
            shell=True,
            cwd=checkout.path,
            env=checkout.lab.env,
            capture_output=True,
            text=True,
            check=False,
        )
        if any(word in advice for word in SHOWS):
            return Tried(advice, (shlex.join(words),), first, Run(done.returncode, done.stdout, done.stderr))
        assert done.returncode == 0, done.stderr
        again = stop(checkout, arguments)
        return Tried(advice, (shlex.join(words), shlex.join(["apply-stack", *arguments])), first, again)
    if words[:1] == ["without"]:
        arguments = without(arguments, words[1:])
    elif words and words[0].startswith("--") and "--reference" not in words:  # a reference tree is downloaded
        arguments = with_options(arguments, words)
    else:
        return Tried(advice, (), first)
    return Tried(advice, (shlex.join(["apply-stack", *arguments]),), first, stop(checkout, arguments))


def filled(checkout: Checkout, advice: str) -> list[str]:
    """The words of an advice, with a person's own words for those in capital letters."""
    own = {
        "NAME": "stack/other",
        "PATH": str(checkout.path),
        "FOLDER": str(checkout.lab.series),
        "DIR": str(checkout.lab.root / "new"),
        "FILE": str(checkout.lab.root / "file"),
        "REF": "good",
    }
    words = shlex.split(advice)
    head = words[: words.index("of")] if "of" in words else words  # "--onto REF of a tree that has them"
    return [own.get(word, word) for word in head]


def without(arguments: Sequence[str], words: Sequence[str]) -> list[str]:
    left = list(arguments)
    for word in words:
        left.remove(word)
    return left


def with_options(arguments: Sequence[str], words: Sequence[str]) -> list[str]:
    """The arguments with an option; one that may stand once is put in the place of the other."""
    left = list(arguments)
    for option in words:
        if option in left and option not in ("--only", "--replace"):
            at = left.index(option)
            del left[at : at + 2]
    return [*left, *words]


# Conflicts: what the series and the tree do not agree about.


def another_function_behind_the_key(checkout: Checkout) -> Sequence[str]:
    other = changed(NATIVE_FUNCTIONS, ("fade_cuda\n", "fade_cuda\n    MPS: fade_metal\n"))
    checkout.commit("Register", {NATIVE_FUNCTIONS: other})
    return checkout.arguments()


def a_kernel_of_another_name(checkout: Checkout) -> Sequence[str]:
    checkout.commit("Rename", {METAL: changed(METAL, ("void brighten(", "void lighten("))})
    return checkout.arguments()


def a_kernel_of_another_name_beside_another_function(checkout: Checkout) -> Sequence[str]:
    another_function_behind_the_key(checkout)
    return a_kernel_of_another_name(checkout)


def the_kernel_without_the_key(checkout: Checkout) -> Sequence[str]:
    text = "".join(OVERLAY[METAL].splitlines(keepends=True)[1:-1])
    checkout.commit("Half of it", {METAL: TREE[METAL].decode() + text})
    return checkout.arguments()


def a_host_function_of_upstreams(checkout: Checkout) -> Sequence[str]:
    text = TREE[HOST].replace(b"} // namespace at", OTHER_FADE + b"} // namespace at").decode()
    checkout.commit("Their own", {HOST: text})
    return checkout.arguments()


def an_entry_that_was_renamed(checkout: Checkout) -> Sequence[str]:
    checkout.commit("Rename", {LISTS: changed(LISTS, ('"fade"', '"fade_"'))})
    return checkout.arguments()


def a_class_that_stands_twice(checkout: Checkout) -> Sequence[str]:
    checkout.commit(
        "Again", {TESTS: TREE[TESTS].decode() + "\n\nclass TestMPS:\n    def test_c(self):\n        pass\n"}
    )
    return checkout.arguments()


def a_test_of_upstreams(checkout: Checkout) -> Sequence[str]:
    checkout.commit("Theirs", {TESTS: TREE[TESTS].decode() + "\n    def test_fade(self):\n        assert not self\n"})
    return checkout.arguments()


def another_file_in_the_place_of_ours(checkout: Checkout) -> Sequence[str]:
    checkout.commit("Theirs", {"docs/fade.md": "Fading is bleaching.\n"})
    return checkout.arguments()


def conflicts_in_all_changes(checkout: Checkout) -> Sequence[str]:
    another_file_in_the_place_of_ours(checkout)
    return a_kernel_of_another_name(checkout)


def nothing_fits(checkout: Checkout) -> Sequence[str]:
    """A tree that the first change does not fit, and all others need that one."""
    manifest = checkout.lab.series / "series.yaml"
    manifest.write_text(manifest.read_text().replace("ops: [fade]\n    upstream:\n      - path: docs", NEEDED))
    return a_kernel_of_another_name(checkout)


NEEDED = "ops: [fade]\n    needs: [fade]\n    upstream:\n      - path: docs"


def a_replacement_whose_place_is_gone(checkout: Checkout) -> Sequence[str]:
    a_kernel_of_another_name_beside_another_function(checkout)
    return checkout.arguments("--replace", "fade")


def a_conflict_in_what_only_chose(checkout: Checkout) -> Sequence[str]:
    a_kernel_of_another_name(checkout)
    return checkout.arguments("--only", "fade", "--only", "fade_notes")


def a_conflict_in_the_one_change_that_only_chose(checkout: Checkout) -> Sequence[str]:
    a_kernel_of_another_name(checkout)
    return checkout.arguments("--only", "fade")


CONFLICTS: tuple[Prepare, ...] = (
    another_function_behind_the_key,
    a_kernel_of_another_name,
    a_kernel_of_another_name_beside_another_function,
    the_kernel_without_the_key,
    a_host_function_of_upstreams,
    an_entry_that_was_renamed,
    a_class_that_stands_twice,
    a_test_of_upstreams,
    another_file_in_the_place_of_ours,
    conflicts_in_all_changes,
    nothing_fits,
    a_replacement_whose_place_is_gone,
    a_conflict_in_what_only_chose,
    a_conflict_in_the_one_change_that_only_chose,
)


# Refusals: choices that do not go together, branches, worktrees, repositories.


def a_change_without_what_it_needs(checkout: Checkout) -> Sequence[str]:
    return checkout.arguments("--only", "fade_tests")


def a_change_without_what_its_need_needs(checkout: Checkout) -> Sequence[str]:
    nothing_fits(checkout)
    manifest = checkout.lab.series / "series.yaml"
    manifest.write_text(manifest.read_text().replace("needs: [fade]\n    upstream:\n      - path: docs", CHAINED))
    checkout.git("reset", "-q", "--hard", "HEAD~1")
    return checkout.arguments("--only", "fade_notes")


CHAINED = "needs: [fade_tests]\n    upstream:\n      - path: docs"


def a_replacement_that_is_left_out(checkout: Checkout) -> Sequence[str]:
    another_function_behind_the_key(checkout)
    return checkout.arguments("--only", "fade_notes", "--replace", "fade")


def a_change_for_other_trees(checkout: Checkout) -> Sequence[str]:
    manifest = checkout.lab.series / "series.yaml"
    condition = f"only_where:\n      - {{defines: darken, path: {METAL}, reason: trees with it}}\n    upstream:"
    head, mark, tail = manifest.read_text().partition("  - id: fade_notes")
    manifest.write_text(head + mark + tail.replace("upstream:", condition, 1))
    darker = TREE[METAL].decode() + "\nkernel void darken() {\n}\n"
    checkout.git("switch", "-q", "-c", "good")
    checkout.commit("Darken", {METAL: darker})
    checkout.git("switch", "-q", "main")
    return checkout.arguments("--only", "fade_notes", "--only", "fade")


def a_branch_that_is_not_there(checkout: Checkout) -> Sequence[str]:
    return checkout.arguments(onto="master")


def a_series_that_is_not_there(checkout: Checkout) -> Sequence[str]:
    return ["--onto", "main", "--repo", str(checkout.path), "--series", "nope"]


def a_folder_that_is_no_repository(checkout: Checkout) -> Sequence[str]:
    return ["--onto", "main", "--repo", str(checkout.lab.root), "--series", str(checkout.lab.series)]


def a_folder_that_is_not_there(checkout: Checkout) -> Sequence[str]:
    return ["--onto", "main", "--repo", "/nowhere", "--series", str(checkout.lab.series)]


def a_tree_that_is_not_pytorch(checkout: Checkout) -> Sequence[str]:
    other = checkout.lab.root / "other"
    checkout.lab.git(checkout.lab.root, "init", "-q", "-b", "main", str(other))
    checkout.lab.git(other, "commit", "-q", "--allow-empty", "-m", "Nothing")
    return ["--onto", "main", "--repo", str(other), "--series", str(checkout.lab.series)]


def foreign_commits(checkout: Checkout) -> Sequence[str]:
    checkout.git("switch", "-q", "-c", checkout.branch)
    checkout.commit("Mine", {"mine.txt": "mine\n"})
    checkout.git("switch", "-q", "main")
    return checkout.arguments()


def a_symbolic_ref(checkout: Checkout) -> Sequence[str]:
    checkout.git("symbolic-ref", f"refs/heads/{checkout.branch}", "refs/heads/elsewhere")
    return checkout.arguments()


def a_branch_with_its_name_as_a_folder(checkout: Checkout) -> Sequence[str]:
    checkout.git("branch", f"{checkout.branch}/inner")
    return checkout.arguments()


def revised(checkout: Checkout) -> None:
    checkout.run().require()
    (checkout.lab.series / "overlay" / "docs/fade.md").write_text("Fading, revised.\n")


def checked_out_elsewhere(checkout: Checkout) -> Sequence[str]:
    revised(checkout)
    checkout.git("worktree", "add", "-q", str(checkout.lab.root / "linked tree"), checkout.branch)
    return checkout.arguments()


def checked_out_here_in_a_dry_run(checkout: Checkout) -> Sequence[str]:
    revised(checkout)
    checkout.git("switch", "-q", checkout.branch)
    return checkout.arguments("--dry-run")


def uncommitted_changes(checkout: Checkout) -> Sequence[str]:
    (checkout.path / "README.md").write_text("not committed\n")
    return checkout.arguments("--checkout")


def a_file_in_the_way(checkout: Checkout) -> Sequence[str]:
    (checkout.path / "docs").mkdir()
    (checkout.path / "docs" / "fade.md").write_text("mine\n")
    return checkout.arguments("--checkout")


def nobody_to_write_as_author(checkout: Checkout) -> Sequence[str]:
    (checkout.lab.home / ".gitconfig").write_text("")
    return checkout.arguments()


def a_signature_that_cannot_be_made(checkout: Checkout) -> Sequence[str]:
    checkout.git("config", "commit.gpgsign", "true")
    checkout.git("config", "gpg.program", "false")
    return checkout.arguments()


def patches_into_a_folder_that_holds_files(checkout: Checkout) -> Sequence[str]:
    folder = checkout.lab.root / "mine"
    folder.mkdir()
    (folder / "mine.txt").write_text("mine\n")
    return checkout.arguments("--format-patch", str(folder))


def a_partial_clone(checkout: Checkout) -> Sequence[str]:
    checkout.git("config", "uploadpack.allowFilter", "true")
    clone = checkout.lab.clone(checkout, f"clone of {checkout.path.name}", "--filter=blob:none", "--no-checkout")
    return clone.arguments()


def drift_in_a_shallow_clone(checkout: Checkout) -> Sequence[str]:
    since = checkout.tip("main~1")
    clone = checkout.lab.clone(checkout, f"clone of {checkout.path.name}", "--depth=1")
    return ["drift", "--since", since, *clone.arguments()]


def drift_backwards(checkout: Checkout) -> Sequence[str]:
    return ["drift", "--since", "main", *checkout.arguments(onto="main~1")]


def drift_from_a_side_branch(checkout: Checkout) -> Sequence[str]:
    checkout.git("switch", "-q", "-c", "side", "main~1")
    checkout.commit("Aside", {"side.txt": "side\n"})
    checkout.git("switch", "-q", "main")
    return ["drift", "--since", "side", *checkout.arguments()]


def drift_with_json_and_annotations(checkout: Checkout) -> Sequence[str]:
    return ["drift", "--json", "--github", "--since", "main~1", *checkout.arguments()]


def an_option_that_there_is_not(checkout: Checkout) -> Sequence[str]:
    return checkout.arguments("--upward")


def an_option_before_a_subcommand(checkout: Checkout) -> Sequence[str]:
    return ["--repo", str(checkout.path), "submit-check"]


REFUSALS: tuple[Prepare, ...] = (
    a_change_without_what_it_needs,
    a_change_without_what_its_need_needs,
    a_replacement_that_is_left_out,
    a_change_for_other_trees,
    a_branch_that_is_not_there,
    a_series_that_is_not_there,
    a_folder_that_is_no_repository,
    a_folder_that_is_not_there,
    a_tree_that_is_not_pytorch,
    foreign_commits,
    a_symbolic_ref,
    a_branch_with_its_name_as_a_folder,
    checked_out_elsewhere,
    checked_out_here_in_a_dry_run,
    uncommitted_changes,
    a_file_in_the_way,
    nobody_to_write_as_author,
    a_signature_that_cannot_be_made,
    patches_into_a_folder_that_holds_files,
    a_partial_clone,
    drift_in_a_shallow_clone,
    drift_backwards,
    drift_from_a_side_branch,
    drift_with_json_and_annotations,
    an_option_that_there_is_not,
    an_option_before_a_subcommand,
)


# Submits: the checkout has a remote that looks like GitHub's.


def on_github(checkout: Checkout) -> Checkout:
    """The checkout with an ``origin/main``, on the stack."""
    checkout.git("remote", "add", "origin", "git@github.com:pytorch/pytorch.git")
    checkout.git("update-ref", "refs/remotes/origin/main", "main")
    checkout.run("--checkout").require()
    return checkout


def submit(checkout: Checkout) -> Sequence[str]:
    return ["submit-check", "--repo", str(checkout.path)]


def a_commit_that_only_the_local_main_has(checkout: Checkout) -> Sequence[str]:
    checkout.git("remote", "add", "origin", "git@github.com:pytorch/pytorch.git")
    checkout.git("update-ref", "refs/remotes/origin/main", "main")
    checkout.commit("[MPS] Mine\n\nProse.", {"mine.txt": "mine\n"})
    checkout.run("--checkout").require()
    return submit(checkout)


def nothing_to_submit(checkout: Checkout) -> Sequence[str]:
    on_github(checkout).git("switch", "-q", "main")
    return submit(checkout)


def another_branch_checked_out(checkout: Checkout) -> Sequence[str]:
    on_github(checkout).git("switch", "-q", "main")
    return [*submit(checkout), "--branch", checkout.branch]


def a_branch_to_submit_that_is_not_there(checkout: Checkout) -> Sequence[str]:
    return [*submit(on_github(checkout)), "--branch", "nothing"]


def a_remote_that_is_not_githubs(checkout: Checkout) -> Sequence[str]:
    on_github(checkout).git("remote", "set-url", "origin", "https://example.com/x.git")
    return submit(checkout)


def a_detached_head(checkout: Checkout) -> Sequence[str]:
    on_github(checkout).git("switch", "-q", "--detach")
    return submit(checkout)


SUBMITS: tuple[Prepare, ...] = (
    a_commit_that_only_the_local_main_has,
    nothing_to_submit,
    another_branch_checked_out,
    a_branch_to_submit_that_is_not_there,
    a_remote_that_is_not_githubs,
    a_detached_head,
)


def words(prepare: Prepare) -> str:
    """The name of a situation."""
    return prepare.__name__.replace("_", " ")
