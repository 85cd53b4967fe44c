"""A layer of the overlay: what of it is taken before the rest, file by file and fragment by fragment."""

from __future__ import annotations

from pathlib import Path

import pytest

from edit_bench import write_series
from patchstack.errors import ManifestError
from patchstack.manifest.overlay import Overlay

MANIFEST = """\
format: 1
changes:
  - {id: one, title: One, message: message.md, upstream: [{defines: a, path: a.h}],
     edits: [{kind: create-file, path: a.h}, {kind: place-fragment, path: b.mm, fragment: run, end_of: {file: end}}]}
  - {id: two, title: Two, message: message.md, overlay: second, upstream: [{defines: a, path: c.h}],
     edits: [{kind: create-file, path: c.h}, {kind: place-fragment, path: b.mm, fragment: run, end_of: {file: end}},
             {kind: place-fragment, path: b.mm, fragment: stop, end_of: {file: end}}]}
"""


def fragment(name: str, text: str) -> bytes:
    return f"// fragment: {name}\n{text}\n// end fragment\n".encode()


OVERLAY = {
    "a.h": b"int a;\n",
    "b.mm": fragment("run", "int run;") + fragment("stop", "int stop;"),
    "second/c.h": b"int c;\n",
    "second/b.mm": fragment("run", "long run;"),
}


def test_a_change_takes_its_layers_text_before_the_rest(tmp_path: Path) -> None:
    first, second = write_series(tmp_path / "s", MANIFEST, OVERLAY).changes
    assert [vars(first.edits[0])["content"], vars(first.edits[1])["fragment"].text] == [b"int a;\n", b"int run;\n"]
    assert vars(second.edits[0])["content"] == b"int c;\n"
    run, stop = (vars(edit)["fragment"] for edit in second.edits[1:])
    assert (run.text, stop.text) == (b"long run;\n", b"int stop;\n")
    assert run.source == f"{tmp_path}/s/overlay/second/b.mm:1"
    assert stop.source == f"{tmp_path}/s/overlay/b.mm:4"


def test_without_the_layer_the_second_change_would_bring_the_firsts_text(tmp_path: Path) -> None:
    """The seeded fault."""
    overlay = {name: text for name, text in OVERLAY.items() if not name.startswith("second")} | {"c.h": b"int c;\n"}
    series = write_series(tmp_path / "s", MANIFEST.replace("overlay: second, ", ""), overlay)
    assert vars(series.changes[1].edits[1])["fragment"].text == b"int run;\n"


def test_a_layer_is_not_seen_through_another_one(tmp_path: Path) -> None:
    write_series(tmp_path / "s", MANIFEST, OVERLAY)
    (tmp_path / "s/overlay/third").mkdir()
    (tmp_path / "s/overlay/third/b.mm").write_bytes(fragment("leap", "int leap;"))
    overlay = Overlay(tmp_path / "s/overlay")
    assert overlay.layered("third", "here").fragment("b.mm", "leap", "here").text == b"int leap;\n"
    with pytest.raises(ManifestError, match="run, stop") as caught:
        overlay.layered("third", "here").layered("second", "here").fragment("b.mm", "leap", "here")
    assert "second/b.mm or " in str(caught.value)


def test_a_layer_that_is_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "linked").symlink_to("real")
    with pytest.raises(ManifestError, match="no layer 'linked'"):
        Overlay(tmp_path).layered("linked", "here")


def test_a_broken_file_of_the_layer_is_named_even_where_the_rest_has_the_fragment(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match="never closed") as caught:
        write_series(tmp_path / "s", MANIFEST, {**OVERLAY, "second/b.mm": b"// fragment: other\nint a;\n"})
    assert caught.value.where == f"{tmp_path}/s/overlay/second/b.mm:1"
