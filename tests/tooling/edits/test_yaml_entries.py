"""Entries of lists and mappings in YAML files: put behind one that is there, or in the place of known ones."""

from __future__ import annotations

import pytest

from edit_bench import edit_from, plan_on
from patchstack.edits import Status
from patchstack.edits.model import Outcome
from patchstack.errors import ManifestError
from patchstack.tree.text import digest
from patchstack.tree.yaml_entries import YamlFile

TAGS = b"""\
# What a tag says.
- tag: core
  desc: |
          The core ops.
          # Not a comment.

# Rare.
- tag: view
  desc: A view.
- other
"""
SCHEMA = b"""\
Argument:
  kind: union
  fields:
    as_none: {type: bool}
    # How many.
    as_int:
      type: int

Kind:
  fields:
    as_int:
      type: int
VERSION:
- 8
- 17
"""


def placed(source: bytes, new: bytes, where: str) -> Outcome:
    return plan_on(
        edit_from(f"{{kind: place-fragment, path: a.yaml, fragment: new, {where}}}", {"a.yaml": new}), source
    )


def replaced(source: bytes, old: bytes, new: bytes, where: str, entries: int = 1) -> Outcome:
    entry = (
        f"{{kind: replace-statements, path: a.yaml, fragment: new, {where} statements: {entries}, "
        f"replaces: ['{digest(old)}']}}"
    )
    return plan_on(edit_from(entry, {"a.yaml": new}), source)


NEW_FIELD = b"    as_list:\n      type: List[int]\n"
FIELDS = "in: [Argument, fields]"


def test_an_entry_lands_behind_the_one_that_is_named() -> None:
    outcome = placed(SCHEMA, NEW_FIELD, f"{FIELDS}, after: as_int")
    assert outcome.after == SCHEMA.replace(b"      type: int\n", b"      type: int\n" + NEW_FIELD, 1)
    assert placed(outcome.after, NEW_FIELD, f"{FIELDS}, after: as_int").status is Status.SATISFIED


def test_an_item_of_a_list_is_named_by_its_first_pair_and_its_block_scalar_goes_with_it() -> None:
    new = b"- tag: out\n  desc: Writes.\n"
    after = TAGS.replace(b"comment.\n", b"comment.\n" + new)
    assert placed(TAGS, new, "after: 'tag: core'").after == after


def test_entries_are_replaced_with_the_comment_above_and_the_rest_stays() -> None:
    old, new = b"    # How many.\n    as_int:\n      type: int\n", b"    as_int:\n      type: SymInt\n"
    outcome = replaced(SCHEMA, old, new, f"{FIELDS},")
    assert outcome.after == SCHEMA.replace(old, new)
    assert replaced(outcome.after, old, new, f"{FIELDS},").status is Status.SATISFIED


def test_two_items_become_three() -> None:
    old, new = b"- 8\n- 17\n", b"- 8\n- 1\n- 20\n"
    assert replaced(SCHEMA, old, new, "in: [VERSION],", 2).after == SCHEMA.replace(old, new)


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        (SCHEMA.replace(b"as_int", b"as_ints", 1), "0 entries match 'after as_int in Argument / fields', expected 1"),
        (SCHEMA.replace(b"Argument", b"Arguments"), "0 places match 'Argument / fields', expected 1"),
        (
            SCHEMA.replace(b"    # How", b"    as_list: 3\n    # How"),
            "as_list is there already, and not as the fragment",
        ),
        (SCHEMA.replace(b"    as_none: {type: bool}", b"    as_none: {type: [bool}"), "the file cannot be read"),
        (SCHEMA.replace(b"Kind", b"Argument"), "2 places match 'Argument / fields', expected 1"),
    ],
)
def test_what_upstream_moved_or_has_otherwise_is_a_conflict(source: bytes, problem: str) -> None:
    outcome = placed(source, NEW_FIELD, f"{FIELDS}, after: as_int")
    assert outcome.after is None
    assert problem in str(outcome.conflict)


def test_an_entry_that_upstream_changed_is_not_replaced() -> None:
    old, new = b"    # How many.\n    as_int:\n      type: int\n", b"    as_int:\n      type: SymInt\n"
    outcome = replaced(SCHEMA.replace(b"int\n", b"long\n", 1), old, new, f"{FIELDS},")
    assert (outcome.status, outcome.after) == (Status.CONFLICT, None)


def test_a_fragment_that_would_end_its_mapping_is_refused() -> None:
    outcome = placed(SCHEMA, b"Other:\n  kind: union\n", f"{FIELDS}, after: as_int")
    assert outcome.after is None
    assert "the entries would change" in str(outcome.conflict)


def test_a_key_that_would_stand_twice_is_refused() -> None:
    outcome = replaced(SCHEMA, b"- 8\n- 17\n", b"- 8\nKind: 3\n", "in: [VERSION],", 2)
    assert outcome.after is None


def test_entries_of_a_flow_collection_have_no_lines_of_their_own() -> None:
    file = YamlFile(b"a: [1, 2]\nb: {c: 1}\n")
    assert [file.entries(node) for name in ("a", "b") for node in file.find([name])] == [[], []]


def test_a_number_of_entries_that_is_none_is_refused() -> None:
    with pytest.raises(ManifestError, match="'statements' is no number"):
        replaced(SCHEMA, b"", NEW_FIELD, f"{FIELDS},", 0)


def test_line_endings_of_the_file_are_kept() -> None:
    crlf = SCHEMA.replace(b"\n", b"\r\n")
    outcome = placed(crlf, NEW_FIELD, f"{FIELDS}, after: as_int")
    assert outcome.after == SCHEMA.replace(b"      type: int\n", b"      type: int\n" + NEW_FIELD, 1).replace(
        b"\n", b"\r\n"
    )
