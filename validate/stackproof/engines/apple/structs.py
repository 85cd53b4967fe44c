"""Every struct that a release's kernels take by value, with the layout that Apple's compiler gave it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from patchstack.cache import read_entry, write_entry
from stackproof.engines.apple.build import AirSource
from stackproof.engines.apple.container import Metallib
from stackproof.engines.apple.errors import ContainerError
from stackproof.engines.apple.release import release_library
from stackproof.engines.metal.struct_layout import Field, StructLayout
from stackproof.engines.metal.toolchain import digest
from stackproof.engines.pool.tasks import Died, run_tasks

_BATCH = 400
_FORM = 2  # of what is remembered
_BUILTIN = {
    "a": "char", "c": "char", "h": "uchar", "s": "short", "t": "ushort", "i": "int", "j": "uint", "l": "long",
    "m": "ulong", "b": "bool", "f": "float", "Dh": "half", "DF16b": "bfloat",
}  # fmt: skip
_ARGUMENT = re.compile(r"L[a-z](?P<value>\d+)E|(?P<type>DF16b|Dh|[achstijlmbf])")


@dataclass(frozen=True)
class KernelStruct:
    """A struct as one kernel takes it.

    Attributes:
        name: without template arguments.
        arguments: its template arguments, numbers or names of types.
        kernel: one that takes it.
        parameter: name of the kernel's parameter.
        layout: Apple's.
    """

    name: str
    arguments: tuple[str, ...]
    kernel: str
    parameter: str
    layout: StructLayout

    @property
    def spelling(self) -> str:
        """As Metal writes the type."""
        return f"{self.name}<{', '.join(self.arguments)}>" if self.arguments else self.name


@dataclass(frozen=True)
class StructBatch:
    """Some kernels of a release; picklable."""

    release: str
    section: str
    cache: Path
    names: tuple[str, ...]


def release_structs(
    release: str,
    section: str,
    cache: Path,
    *,
    jobs: int = 2,
    progress: Callable[[int, int, str], None] = lambda done, total, what: None,
) -> tuple[KernelStruct, ...]:
    """All structs of a release; read from its kernels once and remembered, without their code.

    Raises:
        ContainerError: the library is damaged.
    """
    library = release_library(release, section, cache=cache, offline=True)
    place = Path("apple") / "structs" / f"{digest(str(_FORM), *(one.sha256 for one in library.entries))}.json"
    remembered = read_entry(place)
    if remembered is None:
        remembered = [asdict(one) for one in _read(release, section, cache, library, jobs, progress)]
        write_entry(place, remembered)
    return tuple(_restored(one) for one in remembered)


def _read(
    release: str,
    section: str,
    cache: Path,
    library: Metallib,
    jobs: int,
    progress: Callable[[int, int, str], None],
) -> Iterator[KernelStruct]:
    names = [entry.name for entry in library.entries]
    parts = [
        StructBatch(release, section, cache, tuple(names[at : at + _BATCH])) for at in range(0, len(names), _BATCH)
    ]
    seen: set[str] = set()
    answers = []
    for done, (part, answer) in enumerate(run_tasks(parts, structs_of, jobs=jobs), 1):
        if isinstance(answer, Died):
            raise ContainerError(f"reading the kernels after {part.names[0]} ended: {answer.reason}", where=release)
        answers.append((part.names, answer))
        progress(done, len(parts), "structs of Apple's kernels")
    found = [one for _names, part in sorted(answers, key=lambda pair: names.index(pair[0][0])) for one in part]
    templates = {one.name for one in found if one.arguments}
    for one in found:
        # A kernel that touches no field of a struct does not tell its arguments; another one does.
        if one.spelling not in seen and (one.arguments or one.name not in templates):
            seen.add(one.spelling)
            yield one


def structs_of(part: StructBatch) -> tuple[KernelStruct, ...]:
    """The structs of some kernels, in a child process; one of each spelling."""
    library = release_library(part.release, part.section, cache=part.cache, offline=True)
    found: dict[str, KernelStruct] = {}
    for name in part.names:
        source = AirSource.of(library, name)
        if "air.struct_type_info" not in source.text:
            continue
        for one in _structs(source):
            found.setdefault(one.spelling, one)
    return tuple(found.values())


def _structs(source: AirSource) -> Iterator[KernelStruct]:
    kernel = source.kernel()
    for parameter in kernel.parameters:
        name, arguments = _written(parameter.type_name)
        if parameter.layout is None or not parameter.buffer_size or "::" in name:
            continue
        arguments = arguments or _mangled_arguments(source.text, name)
        layout = parameter.layout.flat(parameter.alignment)
        yield KernelStruct(name, arguments, kernel.name, parameter.name, layout)


def _written(type_name: str) -> tuple[str, tuple[str, ...]]:
    """Name and arguments of a type as the metadata has it, which leaves out those that are defaults."""
    name, _, rest = type_name.partition("<")
    inside = rest.removesuffix(">").replace("unsigned char", "uchar")
    return name, tuple(part.strip() for part in inside.split(",")) if inside else ()


def _mangled_arguments(text: str, name: str) -> tuple[str, ...]:
    """Template arguments from the name that alias analysis knows the struct by; none where it has none."""
    found = re.search(rf'!"_ZTS{len(name)}{re.escape(name)}I([^"]*)E"', text)
    if found is None:
        return ()
    return tuple(match["value"] or _BUILTIN[match["type"]] for match in _ARGUMENT.finditer(found[1]))


def _restored(plain: dict[str, Any]) -> KernelStruct:
    layout = plain["layout"]
    fields = tuple(Field(**field) for field in layout["fields"])
    return KernelStruct(
        plain["name"],
        tuple(plain["arguments"]),
        plain["kernel"],
        plain["parameter"],
        StructLayout(layout["name"], layout["size"], layout["alignment"], fields),
    )


def named(structs: Sequence[KernelStruct], names: Sequence[str]) -> tuple[KernelStruct, ...]:
    """Those of the given names, all their instantiations."""
    return tuple(one for one in structs if one.name in names)
