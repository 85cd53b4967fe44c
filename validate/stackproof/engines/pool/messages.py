"""What a worker sends: data, read in a way that runs nothing.

A worker runs code of a stack in its own process, which may write anything into its pipe; and reading an ordinary
pickle runs what the pickle says. Here it may name data classes, enumerations and a few types that hold values.
"""

from __future__ import annotations

import collections
import dataclasses
import enum
import io
import pathlib
import pickle
import sys
from typing import Any

ANSWER, REQUEST = b"a", b"b"
MOST_BYTES = 1 << 28  # of one message
REST_S = 60  # seconds for the rest of a message that has begun
_PLAIN = (set, frozenset, complex, bytearray, range, slice, collections.Counter, collections.OrderedDict)
_PATHS = (pathlib.PurePosixPath, pathlib.PosixPath, pathlib.Path)


class UnreadableAnswerError(Exception):
    """A worker sent what no answer is."""


class _Writer(pickle.Pickler):
    def reducer_override(self, value: object) -> Any:
        return (type(value), (value.value,)) if isinstance(value, enum.Enum) else NotImplemented


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        found = getattr(sys.modules.get(module), name, None)
        if isinstance(found, type) and (
            found in _PLAIN or found in _PATHS or dataclasses.is_dataclass(found) or issubclass(found, enum.Enum)
        ):
            return found
        if type(found).__module__ == "torch" and type(found).__name__ == "dtype":
            return found
        raise UnreadableAnswerError(f"it names {module}.{name}, which holds no data")


def as_bytes(value: object) -> bytes:
    """Data as it is sent."""
    out = io.BytesIO()
    _Writer(out, protocol=4).dump(value)
    return out.getvalue()


def from_bytes(text: bytes) -> Any:
    """The data that a worker sent.

    Raises:
        UnreadableAnswerError: it is not only data.
    """
    try:
        return _Reader(io.BytesIO(text)).load()
    except UnreadableAnswerError:
        raise
    except Exception as error:  # whatever the bytes make the reader do
        raise UnreadableAnswerError(f"{type(error).__name__}: {error}") from None
