"""Reading a YAML manifest so that every complaint names the file and the line.

The manifest is composed, not loaded: nodes keep their line numbers, duplicate keys are seen, and no value changes its
type behind the author's back (``on`` stays ``on``).
"""

from __future__ import annotations

import posixpath
import stat
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import yaml

from patchstack.errors import ManifestError
from patchstack.manifest.complaints import Complaints

T = TypeVar("T")
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Section:
    """One mapping of a manifest; every key must be asked for, or :meth:`finish` complains about it.

    Attributes:
        file: the manifest, as shown in messages.
        line: 1-based line the mapping begins on.
        what: what the mapping describes, for messages (``a change``, ``an edit``).
    """

    def __init__(self, file: str, node: yaml.Node, what: str) -> None:
        self.file = file
        self.line = node.start_mark.line + 1
        self.what = what
        if not isinstance(node, yaml.MappingNode):
            raise self.error(f"{what} must be a mapping", expected="keys and values", found=_kind(node))
        self._values: dict[str, yaml.Node] = {}
        self._lines: dict[str, int] = {}
        self._asked: set[str] = set()
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise self.error(
                    f"a key of {what} must be a text", line=key.start_mark.line + 1, expected="a text", found=_kind(key)
                )
            name = str(key.value)
            if name in self._values:
                raise self.error(f"the key '{name}' stands twice in {what}", line=key.start_mark.line + 1)
            self._values[name] = value
            self._lines[name] = key.start_mark.line + 1

    def error(self, problem: str, *, line: int = 0, expected: str = "", found: str = "") -> ManifestError:
        """A complaint about this mapping, or about one line in it."""
        return ManifestError(problem, where=f"{self.file}:{line or self.line}", expected=expected, found=found)

    def line_of(self, key: str) -> int:
        """The line of a key, or of the mapping where the key is missing."""
        return self._lines.get(key, self.line)

    def at(self, key: str) -> str:
        """File and line of a key, for complaints about what it names."""
        return f"{self.file}:{self.line_of(key)}"

    def has(self, key: str) -> bool:
        """Whether the key is there."""
        return key in self._values

    def text(self, key: str, default: str | None = None) -> str:
        """A text value; required when there is no default."""
        node = self._take(key, required=default is None)
        if node is None:
            return default or ""
        if not isinstance(node, yaml.ScalarNode) or not node.value.strip():
            raise self.error(f"'{key}' must be a text", line=self.line_of(key), expected="a text", found=_kind(node))
        return str(node.value)

    def flag(self, key: str) -> bool:
        """A yes-or-no value, ``false`` when the key is missing."""
        value = self.text(key, default="false")
        if value not in ("true", "false"):
            raise self.error(f"'{key}' must be true or false", line=self.line_of(key), found=value)
        return value == "true"

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts, empty when the key is missing."""
        node = self._take(key, required=False)
        if node is None:
            return ()
        if not isinstance(node, yaml.SequenceNode) or not all(isinstance(n, yaml.ScalarNode) for n in node.value):
            raise self.error(f"'{key}' must be a list of texts", line=self.line_of(key), found=_kind(node))
        for one in node.value:
            if one.tag == "tag:yaml.org,2002:null":
                line, found = one.start_mark.line + 1, one.value or "nothing"
                raise self.error(f"'{key}' must be a list of texts", line=line, expected="a text", found=found)
        return tuple(str(n.value) for n in node.value)

    def path(self, key: str) -> str:
        """A path inside the tree: relative, with ``/``, without ``..``."""
        return self.tree_path(self.text(key), self.line_of(key))

    def tree_path(self, value: str, line: int) -> str:
        """Check one path that is to be inside the tree.

        Raises:
            ManifestError: it is absolute, leaves the tree, or is not in its shortest form.
        """
        if found := path_problem(value):
            problem, expected = found
            raise self.error(problem, line=line, expected=expected)
        return value

    def section(self, key: str, what: str) -> Section | None:
        """A nested mapping, or ``None`` when the key is missing."""
        node = self._take(key, required=False)
        return None if node is None else Section(self.file, node, what)

    def each(
        self,
        key: str,
        what: str,
        read: Callable[[Section], T],
        *,
        required: bool = True,
        into: Complaints | None = None,
    ) -> tuple[T, ...]:
        """What ``read`` makes of every mapping of a list, and it asks for every key of it.

        Args:
            into: where complaints about the entries go; those that can be read are given back then.

        Raises:
            ManifestError: it is no list of mappings, or ``read`` complains; all that there is to complain about.
        """
        node = self._take(key, required=required)
        if node is None:
            return ()
        if not isinstance(node, yaml.SequenceNode) or (required and not node.value):
            raise self.error(
                f"'{key}' must be a list with at least one entry", line=self.line_of(key), found=_kind(node)
            )
        complaints = into or Complaints()
        made = [complaints.part(self._entry, item, what, read, into) for item in node.value]
        if into is None:
            complaints.check()
        return tuple(one for one in made if one is not None)

    def _entry(self, node: yaml.Node, what: str, read: Callable[[Section], T], into: Complaints | None) -> T:
        return read_whole(Section(self.file, node, what), read, into=into)

    def length(self, key: str) -> int:
        """How many entries a list has; 0 for what is no list."""
        node = self._values.get(key)
        return len(node.value) if isinstance(node, yaml.SequenceNode) else 0

    def one_of(self, keys: Sequence[str]) -> str:
        """The single key of ``keys`` that is there."""
        found = [key for key in keys if self.has(key)]
        self._asked.update(keys if found else self._values)  # what it is cannot be told, so neither can its keys
        if len(found) != 1:
            raise self.error(
                f"{self.what} needs exactly one of {', '.join(keys)}", found=" and ".join(found) if found else "none"
            )
        return found[0]

    def finish(self) -> None:
        """Complain about keys nobody asked for."""
        known, complaints = ", ".join(sorted(self._asked)), Complaints()
        for key, line in self._lines.items():
            if key not in self._asked:
                problem = f"unknown key '{key}' in {self.what}"
                complaints.errors.append(self.error(problem, line=line, expected=f"one of {known}"))
        complaints.check()

    def _take(self, key: str, *, required: bool) -> yaml.Node | None:
        self._asked.add(key)
        node = self._values.get(key)
        if node is None and required:
            raise self.error(f"{self.what} needs the key '{key}'")
        return node


def read_whole(section: Section, read: Callable[[Section], T], *, into: Complaints | None = None) -> T:
    """What ``read`` makes of a mapping of which it asks for every key.

    Args:
        into: where complaints go; without it, all that there are are raised together.

    Raises:
        ManifestError: ``read`` complains, or there is a key that it did not ask for.
    """
    complaints = into or Complaints()
    made = complaints.part(read, section)
    complaints.part(section.finish)
    if into is None:
        complaints.check()
    return made


def read_manifest(file: Path) -> Section:
    """Compose a manifest file.

    Raises:
        ManifestError: the file is missing, a symbolic link, not UTF-8, or not YAML.
    """
    if file.is_symlink():
        raise ManifestError("the manifest is a symbolic link", where=str(file), expected="a regular file")
    text = read_text(file, "the manifest", asked_at=str(file))
    try:
        node = yaml.compose(text, Loader=_LOADER)
    except yaml.YAMLError as error:
        problem = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error).splitlines()[0]
        where = f"{file}:{_error_line(error, text)}"
        raise ManifestError("the manifest is not YAML", where=where, found=problem) from None
    if node is None:
        raise ManifestError("the manifest is empty", where=f"{file}:1")
    return Section(str(file), node, "the series")


def read_text(file: Path, what: str, *, asked_at: str) -> str:
    """The text of a file of the series.

    Args:
        what: what the file is, for messages.
        asked_at: where the file is asked for, for messages.

    Raises:
        ManifestError: it is missing, cannot be read, has CR LF or is not UTF-8; the last two name the file's own line.
    """
    try:
        if not stat.S_ISREG(mode := file.stat().st_mode) and not stat.S_ISDIR(mode):  # reading a pipe may never end
            raise ManifestError(f"{what} cannot be read", where=asked_at, found="not a regular file")
        data = file.read_bytes()
    except FileNotFoundError:
        raise ManifestError(f"{what} is missing", where=asked_at, expected=f"a file {file}") from None
    except OSError as error:
        raise ManifestError(f"{what} cannot be read", where=asked_at, found=error.strerror or str(error)) from None
    require_line_feeds(data, what, file)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ManifestError(f"{what} is not UTF-8", where=f"{file}:{line}", found=f"byte {error.start}") from None


def require_line_feeds(data: bytes, what: str, file: Path) -> None:
    """Refuse a file whose lines end as on Windows: it would land so, or its markers would not be found.

    Raises:
        ManifestError: names the first such line, and how it usually came about.
    """
    before, found, _ = data.partition(b"\r\n")
    if found:
        raise ManifestError(
            f"{what} has lines that end in CR LF",
            where=f"{file}:{before.count(10) + 1}",
            expected="LF, as PyTorch's sources have it",
            next_command="git config core.autocrlf false, then check the file out again",
        )


def _error_line(error: yaml.YAMLError, text: str) -> int:
    unclosed = "quoted scalar" in (getattr(error, "context", None) or "")  # then the problem is where it opened
    mark = getattr(error, "context_mark" if unclosed else "problem_mark", None)
    if mark is not None:
        return int(mark.line) + 1
    position = getattr(error, "position", None)  # a character that YAML does not allow
    return text.count("\n", 0, position) + 1 if isinstance(position, int) else 1


def _kind(node: yaml.Node) -> str:
    if isinstance(node, yaml.MappingNode):
        return "a mapping"
    if isinstance(node, yaml.SequenceNode):
        return "a list" if node.value else "an empty list"
    return f"'{node.value}'" if node.value else "nothing"


def path_problem(value: str) -> tuple[str, str] | None:
    """What is wrong with a path of the tree, and what is expected instead; ``None`` for one that may be used."""
    if value.startswith("/") or (len(value) > 1 and value[1] == ":"):
        return f"the path '{value}' is absolute", "a path relative to the top of the tree"
    if "\\" in value:
        return f"the path '{value}' has a backslash", "'/' between the parts"
    if ".." in value.split("/"):
        return f"the path '{value}' leaves the tree", "a path without '..'"
    if not value.isprintable():  # a line feed, an escape, or a letter without width that hides a ".git"
        return f"the path {value!r} has a character that cannot be printed", ""
    if any(part.lower().rstrip(". ") in (".git", "git~1") for part in value.split("/")):  # as Windows reads names
        return f"the path '{value}' is inside a git directory", ""
    if posixpath.normpath(value) != value or value == ".":
        return f"the path '{value}' is not in its shortest form", posixpath.normpath(value)
    return None
