"""What is compared between two trees: the condition a change is in, taken apart so that each part has its own history.

A change breaks piece by piece: one commit renames the function that a fragment stands after, a later one rewrites the
list that an entry comes from. Each piece is a facet, and each facet is traced on its own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from patchstack.edits import Conflict, Rung
from patchstack.edits.regenerate import RegenerateShim
from patchstack.errors import TreeError
from patchstack.manifest.closest import closest
from patchstack.planning import ChangePlan, ChangeState, EditPlan, StackPlan
from patchstack.planning.upstream import defined_names, lacking, unmet_conditions
from patchstack.series import Change, Requirement, in_words
from patchstack.tree.git import Tree

STATE = "state"
REFUSED = "refused"
"""The state of every change on a tree that ``apply-stack`` refuses as a whole."""

_ORDINARY_RUNGS = (Rung.EXACT, Rung.STRUCTURAL, Rung.CONTEXT, Rung.NEW_FILE, Rung.REGENERATED, None)


@dataclass(frozen=True)
class Facet:
    """One thing that is judged about a change on a tree.

    Attributes:
        name: what is judged: ``state``, an edit by file and words, or a requirement.
        value: the judgement, in words that do not depend on line numbers.
        needs_person: whether it stops the run, or asks for a look at the result.
        path: the file; empty for the state.
        detail: a sentence for a person, as of this tree; not compared.
        conflict: the conflict behind it; not compared, its lines move.
    """

    name: str
    value: str
    needs_person: bool = False
    path: str = ""
    detail: str = field(default="", compare=False)
    conflict: Conflict | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Condition:
    """How a change stands on a tree.

    Attributes:
        facets: by name, the state first.
    """

    facets: Mapping[str, Facet]

    @property
    def state(self) -> Facet:
        return self.facets[STATE]

    @property
    def blocks(self) -> bool:
        """Whether something about it needs a person."""
        return any(facet.needs_person for facet in self.facets.values())

    @property
    def words(self) -> str:
        """State and number of conflicts, for a line of a report."""
        count = sum(facet.conflict is not None for facet in self.facets.values())
        return f"{self.state.value}, {count} conflict{'s' if count > 1 else ''}" if count else self.state.value

    def value(self, name: str) -> str:
        """The value of a facet; empty where this tree has nothing to judge."""
        return self.facets[name].value if name in self.facets else ""

    def digest_words(self) -> str:
        """The part of the condition that tells one report from another: the state, and what needs a person."""
        telling = [facet for facet in self.facets.values() if facet.needs_person and facet.name != STATE]
        return "\n".join([self.state.value, *sorted(f"{facet.name} = {facet.value}" for facet in telling)])


def fingerprint(series: str, change: str, commit: str, words: str) -> str:
    """A name for a finding that is the same every day: 16 hexadecimal digits.

    Args:
        series: name of the series.
        change: id of the change.
        commit: the commit that brought it about; empty where none is known.
        words: the condition that it brought about.
    """
    return hashlib.sha256("\0".join((series, change, commit, words)).encode(errors="replace")).hexdigest()[:16]


def conditions_of(plan: StackPlan) -> dict[str, Condition]:
    """The condition of every change of a plan, by change id."""
    blocked = {change.change.id for change in plan.blocked}
    return {change.change.id: _condition(change, change.change.id in blocked) for change in plan.changes}


def refused_conditions(changes: tuple[Change, ...], tree: Tree, error: TreeError) -> dict[str, Condition]:
    """The condition of every change on a tree that cannot be planned on, by change id."""
    found: dict[str, Condition] = {}
    for change in changes:
        needs = [] if _is_left_out(change, tree) else list(_lacking(change, tree))
        state = Facet(STATE, REFUSED, needs_person=True, detail="" if needs else error.problem)
        found[change.id] = Condition(_by_name([state, *needs]))
    return found


def _condition(plan: ChangePlan, blocked: bool) -> Condition:
    is_absent = plan.state is ChangeState.ABSENT
    signs = "; ".join(words for words, holds in plan.markers.items() if holds)
    signs = f"it is for trees in which {in_words(plan.unmet)}" if plan.unmet else signs
    state = Facet(STATE, plan.state.value, blocked and not is_absent, detail=signs)
    if not is_absent and not blocked:  # its edits have nothing to do, whatever their anchors look like
        return Condition({STATE: state})
    edits = (_edit_facet(edit) for edit in plan.edits if not isinstance(edit.edit, RegenerateShim))
    return Condition(_by_name([state, *edits]))


def _by_name(facets: Iterable[Facet]) -> dict[str, Facet]:
    """Facets by name; a name that comes again is numbered, since an edit may stand twice in a manifest."""
    found: dict[str, Facet] = {}
    for facet in facets:
        name, number = facet.name, 1
        while name in found:
            number += 1
            name = f"{facet.name} ({number})"
        found[name] = replace(facet, name=name)
    return found


def _edit_facet(plan: EditPlan) -> Facet:
    outcome = plan.outcome
    conflict = outcome.conflict
    value = f"{outcome.status.value}, {outcome.rung.value}" if outcome.rung else outcome.status.value
    if conflict is not None:
        value += f", {len(conflict.matches)} of {conflict.expected_matches} places"
    return Facet(
        f"{plan.edit.path}: {plan.does}",
        value,
        needs_person=conflict is not None or outcome.rung not in _ORDINARY_RUNGS,
        path=plan.edit.path,
        detail=str(conflict) if conflict else f"{plan.edit.path}: {plan.does}: {value}",
        conflict=conflict,
    )


def _is_left_out(change: Change, tree: Tree) -> bool:
    try:
        return bool(unmet_conditions(change, tree))
    except TreeError:  # which is why the tree is refused
        return False


def _lacking(change: Change, tree: Tree) -> Iterator[Facet]:
    for need in change.requires:
        try:
            what = lacking(need, tree)
            words = f"{what} ({need.reason})" if what else ""
        except TreeError as error:
            words = str(error)
        if words:
            name = f"requirement {need.path}: {need.defines or 'is there'}"
            detail = f"the tree lacks {words}{_nearest(need, tree)}"
            yield Facet(name, "lacking", needs_person=True, path=need.path, detail=detail)


def _nearest(need: Requirement, tree: Tree) -> str:
    """What a name that is gone may be called now."""
    try:
        data = tree.read(need.path) if need.defines else None
    except TreeError:
        return ""
    names = closest(need.defines, sorted(defined_names(data, need.path))) if data else []
    return f"; nearest: {', '.join(names)}" if names else ""
