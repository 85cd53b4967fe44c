"""Where heavy things live: one folder outside every repository, safe to delete at any time."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from patchstack.errors import TreeError

_ANOTHER = "export PATCHSTACK_CACHE=FOLDER, a folder of your own"


def is_refusal(error: OSError) -> bool:
    """Whether something may not be written, as against being broken or full."""
    return error.errno in (errno.EACCES, errno.EPERM, errno.EROFS)


def cache_dir() -> Path:
    """The project's cache folder, created on first use.

    ``PATCHSTACK_CACHE`` names it; otherwise it is ``patchstack`` in ``XDG_CACHE_HOME`` or ``~/.cache``.

    Raises:
        TreeError: it cannot be created.
    """
    where = os.environ.get("PATCHSTACK_CACHE") or "~/.cache/patchstack"
    try:
        base = _named_folder()
        where = str(base)
        base.mkdir(parents=True, exist_ok=True)
        return base.resolve()
    except (OSError, RuntimeError) as error:  # a RuntimeError where there is no home folder
        raise TreeError(
            "the cache folder cannot be used", where=where, found=str(error), next_command=_ANOTHER
        ) from None


def write_refusal(error: OSError, cache: Path) -> TreeError | None:
    """The sentence for an error of writing in the cache: which folder may not be written, whose it is, what to type.

    Returns:
        ``None`` for an error about something else.
    """
    place = Path(os.fsdecode(error.filename)) if isinstance(error.filename, (str, bytes, os.PathLike)) else None
    if not is_refusal(error) or place is None or not place.is_relative_to(cache):
        return None
    return _unwritable(next((one for one in (place, *place.parents) if one.is_dir()), cache), error.strerror)


def unwritable(cache: Path, folders: Iterable[str]) -> TreeError | None:
    """The same, before anything is tried: for these folders of the cache, what is directly in them, and the cache."""
    for name in folders:
        folder = cache / name
        try:
            places = [folder, *folder.iterdir()] if folder.is_dir() else [cache]
        except OSError as error:
            return _unwritable(folder, error.strerror)
        for place in places:
            if place.is_dir() and not os.access(place, os.W_OK | os.X_OK):
                return _unwritable(place, "it may not be written")
    return None


def not_executable(cache: Path) -> TreeError | None:
    """The sentence for a cache whose file system runs no programs and loads no libraries; ``None`` for any other."""
    if not os.statvfs(cache).f_flag & getattr(os, "ST_NOEXEC", 0):
        return None
    return TreeError(
        "the cache is on a file system that is mounted noexec, so that nothing compiled there can be loaded",
        where=str(cache),
        next_command=f"{_ANOTHER} elsewhere",
    )


@contextlib.contextmanager
def writing(cache: Path) -> Iterator[None]:
    """While active, an error of writing in the cache is one sentence.

    Raises:
        TreeError: instead of such an error.
    """
    try:
        yield
    except OSError as error:
        refusal = write_refusal(error, cache)
        if refusal is None:
            raise
        raise refusal from None


def _unwritable(place: Path, why: str | None) -> TreeError:
    foreign = place.stat().st_uid != os.geteuid()
    return TreeError(
        "the cache cannot be written",
        where=str(place),
        found="a folder of another user" if foreign else why or "a refusal",
        next_command=_ANOTHER,
    )


def _named_folder() -> Path:
    """The cache folder as the environment names it, which may not be there.

    Raises:
        RuntimeError: there is no home folder.
    """
    named = os.environ.get("PATCHSTACK_CACHE")
    return Path(named) if named else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "patchstack"


def read_entry(place: Path) -> Any:
    """The JSON value remembered at ``place``, relative to the cache; ``None`` where it is not there or is damaged."""
    try:
        return json.loads((_named_folder() / place).read_bytes())
    except (OSError, ValueError, RecursionError, RuntimeError):
        return None


def write_entry(place: Path, value: Any) -> None:
    """Remember a JSON value at ``place``. Best effort: without it the next run does the work again."""
    with contextlib.suppress(OSError, TreeError):
        write_whole(cache_dir() / place, json.dumps(value))


@contextlib.contextmanager
def replacing(place: Path) -> Iterator[Path]:
    """A file beside ``place`` for the block to write: it takes that place at the end, and goes away after an error.

    A reader never sees half a file, whoever else writes the same one. What the block did not write replaces nothing.
    """
    place.parent.mkdir(parents=True, exist_ok=True)
    unfinished = place.with_name(f"{place.name[:50]}.{secrets.token_hex(8)}.partial")
    try:
        yield unfinished
        with contextlib.suppress(FileNotFoundError):
            os.replace(unfinished, place)
    finally:
        with contextlib.suppress(OSError):
            unfinished.unlink()


def write_whole(place: Path, text: str) -> None:
    """Write a file that is there with all its text or not at all."""
    with replacing(place) as unfinished:
        unfinished.write_text(text, encoding="utf-8")


def made_folder(folder: Path, make: Callable[[Path], None]) -> Path:
    """The folder, made by ``make`` unless it is there: whole or not at all, whoever else is at work."""
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(prefix=f"{folder.name}.", dir=folder.parent))
    try:
        make(unfinished)
        os.rename(unfinished, folder)
    except OSError:
        if not folder.is_dir():
            raise
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return folder


@contextlib.contextmanager
def alone(lock: Path) -> Iterator[None]:
    """While active, no other process is in a block of the same lock: workers that need one thing make it once."""
    with lock.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
