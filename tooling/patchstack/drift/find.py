"""From two commits to what happened to each change between them."""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from patchstack.drift.condition import REFUSED, STATE, Condition, Facet, fingerprint
from patchstack.drift.line import Line, UpstreamCommit, read_line
from patchstack.drift.model import ChangeDrift, Drift, DriftPart, Turn, When
from patchstack.drift.replay import Replay
from patchstack.drift.search import first_of_present
from patchstack.drift.torchgen import refused_by_torchgen
from patchstack.errors import MissingObjectError, TreeError
from patchstack.planning import ChangeState
from patchstack.series import Change, Series
from patchstack.tree.git import GitCommitHash, Repository

DEFAULT_VISITS = 45
"""Trees that are planned on before the search stops at what bisection found."""


def find_drift(
    repository: Repository,
    series: Series,
    since: GitCommitHash,
    onto: GitCommitHash,
    *,
    visits: int = DEFAULT_VISITS,
    on_visit: Callable[[int], None] = lambda count: None,
) -> Drift:
    """Compare the conditions of a series' changes at two commits, and find the commits that made the difference.

    Args:
        since: an earlier commit of the line of first parents that leads to ``onto``.
        visits: trees to plan on; both ends and what bisection needs are planned on in any case.
        on_visit: told the number of trees so far, before each.

    Raises:
        TreeError: ``since`` is not on that line, history is cut off, or an object is missing.
    """
    replay = Replay(repository, series, on_visit)
    line = read_line(repository, since, onto, replay.paths)
    search = _Search(repository, series, line, replay, visits)
    notes = list(line.notes)
    try:
        search.shims = refused_by_torchgen(repository, series, since, onto)
    except MissingObjectError as error:
        notes.append(f"torchgen was not run, the repository lacks {error.where}: regenerated headers were not judged")
    try:
        changes = tuple(map(search.change, series.changes))
    except MissingObjectError as error:
        error.next_command = _fetch_command(repository, line, replay.paths)
        raise
    is_refused = all(c.since.state.value == c.onto.state.value == REFUSED for c in changes)
    return Drift(series, line, changes, replay.visited, is_refused, tuple(notes))


def _fetch_command(repository: Repository, line: Line, paths: Sequence[str]) -> str:
    """What makes git fetch the series' files into a partial clone; this project's own git commands never fetch."""
    first, last = line.since.hash[:12], line.onto.hash[:12]
    return (
        f"(cd {shlex.quote(str(repository.root))} && set -- {shlex.join(paths)} && "
        f'git log --first-parent --patch {first}..{last} -- "$@" && '
        f'git diff $(git hash-object -t tree /dev/null) {last} -- "$@") > /dev/null'
    )


@dataclass
class _Search:
    """The search on one line.

    Attributes:
        shims: by change id, what torchgen has against the change at ``onto``, and whether it had at ``since`` too.
    """

    repository: Repository
    series: Series
    line: Line
    replay: Replay
    visits: int
    shims: Mapping[str, tuple[Facet, When]] = field(default_factory=dict)

    def change(self, change: Change) -> ChangeDrift:
        """What happened to one change."""
        stations = self.line.stations
        since, onto = (self.replay.at(stations[end])[change.id] for end in (0, -1))
        turns = defaultdict[tuple[When, int], list[_Traced]](list)
        for facet in onto.facets.values():
            part = _difference(since, onto, facet)
            if part is not None:
                traced = self._trace(change, part)
                turns[traced.when, traced.place].append(traced)
        if change.id in self.shims:
            facet, when = self.shims[change.id]
            turns[when, 0].append(_Traced(when, 0, DriftPart("", facet, needs_person=True)))
        in_order = sorted(turns.items(), key=lambda item: (item[0][0] is When.BETWEEN, item[0][1]))
        return ChangeDrift(change, since, onto, tuple(self._turn(change, traced) for _, traced in in_order))

    def _trace(self, change: Change, part: DriftPart) -> _Traced:
        """Find the place at which a part of the present condition began, and how it looked there."""
        stations, name = self.line.stations, part.after.name
        found = first_of_present(
            len(stations),
            lambda place: self.replay.at(stations[place])[change.id].value(name),
            lambda place: self.replay.is_known(stations[place]) or self.replay.visited < self.visits,
        )
        commit = stations[found.index]
        as_it_began = replace(part, after=self.replay.at(commit)[change.id].facets[name])
        if found.index == 0:
            return _Traced(When.BEFORE, 0, as_it_began, found.exact)
        # The parent has the files of the station before, which was looked at: this costs nothing.
        (parent, *_) = self.repository.commit(commit).parents
        if self.replay.at(parent)[change.id].value(name) == part.after.value:
            problem = "history does not add up: the commit found leaves the condition as its parent has it"
            raise TreeError(problem, where=commit[:12], next_command=f"{self.repository.typed} fsck")
        return _Traced(When.COMMIT, found.index, as_it_began, found.exact)

    def _turn(self, change: Change, traced: list[_Traced]) -> Turn:
        when, place = traced[0].when, traced[0].place
        commit = UpstreamCommit.read(self.repository, self.line.stations[place]) if when is When.COMMIT else None
        words = traced[0].part.after.name
        if when is not When.BETWEEN:
            words = self.replay.at(self.line.stations[place])[change.id].digest_words()
        name = fingerprint(self.series.name, change.id, commit.hash if commit else "", words)
        return Turn(when, commit, all(t.exact for t in traced), tuple(t.part for t in traced), name)


@dataclass(frozen=True)
class _Traced:
    """A part, and where on the line it began.

    Attributes:
        place: index of a station; 0 where no commit on the line is known for it.
        exact: see :class:`~patchstack.drift.search.Found`.
    """

    when: When
    place: int
    part: DriftPart
    exact: bool = True


def _difference(since: Condition, onto: Condition, facet: Facet) -> DriftPart | None:
    """The part of a report that a facet of the present makes; ``None`` where it is as it was, and fine."""
    before = since.value(facet.name)
    if before == facet.value:
        return DriftPart(before, facet, needs_person=True) if facet.needs_person else None
    if facet.name == STATE:
        # Back from a blocked state is good news. To have landed, or to be reverted, is news that somebody must act on.
        mended = facet.value == ChangeState.ABSENT.value and since.state.needs_person
        return DriftPart(before, facet, needs_person=not mended)
    return DriftPart(before, facet, facet.needs_person) if before or facet.needs_person else None
