"""Places in a Python file, by structure: a way down in steps, such as class, function, assignment, call, keyword."""

from __future__ import annotations

from patchstack.edits.model import Spot
from patchstack.manifest.closest import closest
from patchstack.manifest.section import Section
from patchstack.tree.python import PythonFile, Step, is_entry

STEP_KINDS = ("class", "function", "assign", "call", "keyword", "key")


def load_steps(section: Section, key: str, *, ends_with: str = "") -> tuple[Step, ...]:
    """Read a list of steps such as ``[{class: TestMPS}]`` or ``[{assign: op_db}, {call: OpInfo, argument: '"f"'}]``.

    Args:
        ends_with: the kind the last step must have; empty for any.

    Raises:
        ManifestError: a step is not one, or the last one is of another kind.
    """
    steps = section.each(key, f"a step of '{key}'", _step)
    if ends_with and steps[-1].kind != ends_with:
        raise section.error(
            f"'{key}' does not lead to a {ends_with}", line=section.line_of(key), found=f"a step to {steps[-1]}"
        )
    return steps


def _step(item: Section) -> Step:
    kind = item.one_of(STEP_KINDS)
    argument = load_entry(item, "argument") if kind == "call" else ""
    return Step(kind, load_entry(item, kind) if kind == "key" else item.text(kind), argument)


def load_entry(section: Section, key: str, *, default: str | None = None) -> str:
    """Read the source of one entry of a container; something that is none could never be found."""
    source = section.text(key, default=default)
    if not is_entry(source) and section.has(key):
        raise section.error(
            f"'{key}' is not one Python expression",
            line=section.line_of(key),
            expected="such as '\"name\"'",
            found=source,
        )
    return source


def describe_steps(steps: tuple[Step, ...]) -> str:
    """The steps in words, outermost first."""
    return " / ".join(str(step) for step in steps)


def nearest_step(file: PythonFile, steps: tuple[Step, ...]) -> list[Spot]:
    """What the first step that leads nowhere could have been called."""
    for count, step in enumerate(steps):
        if file.find(steps[: count + 1]):
            continue
        known: dict[str, int] = {}
        for parent in file.find(steps[:count]):
            known.update(file.alternatives(parent, step))
        wanted = step.argument if step.kind == "call" else step.name
        words = f"call {step.name}({{}}, ...)" if step.kind == "call" else f"{step.kind} {{}}"
        return [Spot(words.format(name), known[name]) for name in closest(wanted, known)]
    return [Spot(str(steps[-1]), file.line(node.start_byte)) for node in file.find(steps)]
