"""The C interface of the stand-in device, mirrored with ctypes: one dispatch as the encoder tells it."""

from __future__ import annotations

import ctypes
import enum
from dataclasses import dataclass

SLOTS = 31
RESOURCES = 1024
NO_DTYPE = 255


class SlotKind(enum.IntEnum):
    """``enum standin_kind``."""

    UNSET = 0
    BUFFER = 1
    BYTES = 2
    NIL = 3


class RawSlot(ctypes.Structure):
    """``struct standin_slot``."""

    _fields_ = tuple(
        (name, ctypes.c_uint64)
        for name in ("kind", "address", "available", "offset", "buffer", "shadow", "dtype", "stale")
    )


class RawResource(ctypes.Structure):
    """``struct standin_resource``."""

    _fields_ = tuple((name, ctypes.c_uint64) for name in ("buffer", "bytes", "shadow", "writable"))


class RawDispatch(ctypes.Structure):
    """``struct standin_dispatch``."""

    _fields_ = (
        ("kernel", ctypes.c_char_p),
        ("by_groups", ctypes.c_uint64),
        ("grid", ctypes.c_uint64 * 3),
        ("group", ctypes.c_uint64 * 3),
        ("threadgroup_memory", ctypes.c_uint64 * SLOTS),
        ("slots", RawSlot * SLOTS),
        ("resource_count", ctypes.c_uint64),
        ("resources", RawResource * RESOURCES),
    )


RUN = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(RawDispatch), ctypes.c_void_p, ctypes.c_uint64)
FIND = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p)
NOTE = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_char_p)
COMPILE = ctypes.CFUNCTYPE(ctypes.c_long, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_uint64)
CALL = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_int)


class CallEvent(enum.IntEnum):
    """``enum standin_event``."""

    BEGUN = 0
    RETURNED = 1
    RAISED = 2
    ON_CPU = 3


@dataclass(frozen=True)
class Slot:
    """One entry of the encoder's argument table.

    Attributes:
        kind: what is bound.
        address: of the first byte that the kernel gets.
        available: bytes from there to the end of the buffer or of the bytes.
        offset: of that first byte in its buffer.
        buffer: address of the whole buffer.
        shadow: address of the buffer's shadow bytes, 0 where there are none.
        dtype: number of the ``c10::ScalarType`` that the buffer was made for; ``NO_DTYPE`` where unknown.
        stale: bound before the pipeline state of this dispatch was set.
    """

    kind: SlotKind
    address: int
    available: int
    offset: int
    buffer: int
    shadow: int
    dtype: int
    stale: bool


@dataclass(frozen=True)
class Resource:
    """A buffer that a kernel reaches through an argument buffer.

    Attributes:
        buffer: address of the whole buffer.
        bytes: its length.
        shadow: address of its shadow bytes, 0 where there are none.
        writable: the host said that the kernel may write to it.
    """

    buffer: int
    bytes: int
    shadow: int
    writable: bool


@dataclass(frozen=True)
class Dispatch:
    """One dispatch.

    Attributes:
        kernel: host name of the kernel.
        grid: threads.
        group: threads per threadgroup.
        by_groups: encoded by ``dispatchThreadgroups``: every threadgroup is whole.
        slots: the argument table, index 0 first.
        threadgroup_memory: bytes by index.
        resources: buffers beside those of the table.
    """

    kernel: str
    grid: tuple[int, int, int]
    group: tuple[int, int, int]
    by_groups: bool
    slots: tuple[Slot, ...]
    threadgroup_memory: tuple[int, ...]
    resources: tuple[Resource, ...] = ()

    @classmethod
    def of(cls, raw: RawDispatch) -> Dispatch:
        """Copy what the device handed over."""
        slots = tuple(
            Slot(SlotKind(s.kind), s.address, s.available, s.offset, s.buffer, s.shadow, s.dtype, bool(s.stale))
            for s in raw.slots
        )
        grid, group = tuple(raw.grid), tuple(raw.group)
        name = raw.kernel.decode()
        used = raw.resources[: raw.resource_count]
        resources = tuple(Resource(one.buffer, one.bytes, one.shadow, bool(one.writable)) for one in used)
        return cls(name, grid, group, bool(raw.by_groups), slots, tuple(raw.threadgroup_memory), resources)
