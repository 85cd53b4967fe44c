"""Find the trailers that tie each change to its pull request, and refuse to go on where they no longer hold.

They are taken from the stack that was submitted last from this clone: the branch, else the reflogs, else the record.
A remote that has something else was changed elsewhere, and regenerating over it would lose that silently; so the run
stops until the change was brought in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from patchstack.errors import RefError
from patchstack.messages.model import GhstackTrailers, PullRequest
from patchstack.messages.trailers import Carried, OldMessage, carry, extract
from patchstack.planning import ChangePlan, StackPlan
from patchstack.pulls.history import Earlier, Source, earlier_commits, looked_at
from patchstack.pulls.landed import Landing, find_landings
from patchstack.pulls.outcomes import PullAction, PullOutcome, close_command
from patchstack.pulls.remote import RemotePull, RemotePulls, read_remote
from patchstack.pulls.settings import read_settings
from patchstack.series import Change, in_words
from patchstack.stack.branch import Branch
from patchstack.stack.identify import ChangeMatch, Identifier, MatchReason
from patchstack.stack.record import Made
from patchstack.tree.git import GitCommitHash, GitTreeHash, Repository
from patchstack.tree.git.model import Commit
from patchstack.tree.git.process import GitCommandError

_NOT_FETCHED = "cannot tell whether it was amended elsewhere, its refs were not fetched"
_Identities = Mapping[GitCommitHash, ChangeMatch | None]


@dataclass(frozen=True)
class Link:
    """The trailers of one change, with where they come from.

    Attributes:
        trailers: ghstack's, letter for letter.
        source: where the commit with them was found.
        evidence: why that commit belongs to the change.
        note: what else there is to say, one sentence without a full stop; may be empty.
    """

    trailers: GhstackTrailers
    source: Source
    evidence: MatchReason
    note: str = ""

    @property
    def url(self) -> str:
        linked = self.trailers.pull_request
        return linked.url if linked else ""


@dataclass(frozen=True)
class StackLinks:
    """What the new stack takes over, and what becomes of every pull request.

    Attributes:
        by_change: change id to trailers, for the changes that become commits.
        fates: the stack's pull requests from the bottom up, then those that are not in it any more.
    """

    by_change: Mapping[str, GhstackTrailers] = field(default_factory=dict)
    fates: tuple[PullOutcome, ...] = ()

    @property
    def left_out(self) -> tuple[str, ...]:
        """Ids of submitted changes that this run leaves out: their trailers are on no commit of the new stack."""
        kept = (PullAction.LEFT_OUT, PullAction.NOT_APPLICABLE)
        return tuple(fate.change for fate in self.fates if fate.becomes in kept)


def link_stack(repository: Repository, plan: StackPlan, branch: Branch, made: Sequence[Made]) -> StackLinks:
    """Tie the changes of ``plan`` to the pull requests of the stack they replace.

    Raises:
        RefError: two commits of the branch claim one change or one pull request, or a pull request was changed
            elsewhere since it was last submitted from here.
    """
    return _Linker(repository, plan, branch, made).run()


class _Linker:
    """One run of :func:`link_stack`, with what its steps share."""

    def __init__(self, repository: Repository, plan: StackPlan, branch: Branch, made: Sequence[Made]) -> None:
        self.repository = repository
        self.plan = plan
        self.branch = branch
        self.made = [entry for entry in made if entry.series in plan.series.names]
        self.titles = {change.id: change.title for change in plan.series.changes}
        self.identifier = Identifier(self.made, self.titles)
        self.links: dict[str, Link] = {}
        self.unlinked: dict[str, str] = {}  # change to the pull request that it was cut from
        self.settings = read_settings(repository.root)

    def run(self) -> StackLinks:
        on_branch = [*self.branch.own, *self.branch.foreign]
        earlier = list(earlier_commits(self.repository, self.branch.ref, self._upstream()))
        for commit in (*on_branch, *(past.commit for past in earlier)):
            known = self.identifier.made_as(commit)
            if known is not None:
                self.identifier.learn(commit.message, known.change)
        identities = {commit.hash: self._identity(commit) for commit in on_branch}
        carried = self._carry(on_branch, identities)
        self.unlinked.update(dict.fromkeys(_unlinked(on_branch, identities), ""))
        self._fill(earlier)
        remote = self._remote()
        urls = self._urls() | {pull.url for pull in _pulls(carried.unclaimed)}
        landed = find_landings(self.repository, urls, self.plan.onto, self._since()) if urls else {}
        self._compare(remote, earlier, landed)
        return self._linked(carried, on_branch, landed)

    def _upstream(self) -> list[str]:
        return [self.plan.onto, *self.branch.upstream]

    def _identity(self, commit: Commit) -> ChangeMatch | None:
        """An id that the series no longer has is no identity: it may have been renamed, and then the title tells."""
        known = self.identifier.identify(commit)
        if known is not None and known.change in self.titles:
            return known
        renamed = [change for change, title in self.titles.items() if title == commit.title]
        return ChangeMatch(renamed[0], MatchReason.TITLE) if renamed else known

    def _carry(self, commits: Sequence[Commit], identities: _Identities) -> Carried:
        """Take over what the branch has; whatever is not clear there stops the run."""
        known = {str(hash_): identity.change for hash_, identity in identities.items() if identity is not None}
        carried = carry([OldMessage(c.message, known.get(c.hash), c.hash) for c in commits], self.titles)
        for commit in commits:
            identity = identities[commit.hash]
            trailers = extract(commit.message)
            if identity is not None and carried.by_change.get(identity.change) == trailers and trailers:
                self.links[identity.change] = Link(trailers, Source.BRANCH, identity.evidence)
        return carried

    def _fill(self, earlier: Iterable[Earlier]) -> None:
        """Look further back for the changes that have no trailers on the branch."""
        for past, identity in self._candidates(earlier):
            self._offer(identity.change, Link(extract(past.commit.message), past.source, identity.evidence))

    def _offer(self, change: str, link: Link) -> None:
        """Use a link for a change that has none, unless somebody cut that on purpose."""
        if change in self.unlinked:
            self.unlinked[change] = self.unlinked[change] or link.url
        elif change in self.titles and change not in self.links and link.url not in self._urls():
            self.links[change] = link

    def _urls(self) -> set[str]:
        return {link.url for link in self.links.values()}

    def _candidates(self, earlier: Iterable[Earlier]) -> Iterator[tuple[Earlier, ChangeMatch]]:
        for past in earlier:
            identity = self._identity(past.commit)
            if identity is not None:
                yield past, identity
        for entry in reversed(self.made):
            if extract(entry.message).pull_request is not None:
                yield _recorded(entry), ChangeMatch(entry.change, MatchReason.RECORDED, entry)

    def _remote(self) -> RemotePulls:
        """The remote's refs, and from them what a submit left behind that died before it rewrote the local commits."""
        urls = self._urls()
        settings = self.settings
        if not urls and not settings.username:
            return RemotePulls(settings.remote, {})
        remote = read_remote(self.repository, settings.remote, username=settings.username, urls=urls)
        for pull in remote.by_url.values():
            known = self.identifier.made_as(pull.orig)
            if known is not None:
                self._offer(known.change, Link(pull.trailers, Source.REMOTE, known.evidence))
        return remote

    def _compare(self, remote: RemotePulls, earlier: Sequence[Earlier], landed: Mapping[str, Landing]) -> None:
        """Refuse to go over what somebody else did to a pull request that is still open.

        Raises:
            RefError: a pull request has another state than any that was submitted or brought in here.
        """
        seen: dict[str, set[str]] = {}
        for past in earlier:
            trailers = extract(past.commit.message)
            if trailers.pull_request and trailers.source_id:
                seen.setdefault(trailers.pull_request.url, set()).add(trailers.source_id)
        amended: list[RemotePull] = []
        for change, link in list(self.links.items()):
            pull = remote.by_url.get(link.url)
            if link.url in landed:
                continue
            if pull is None or pull.trailers.source_id is None:
                self.links[change] = replace(link, note=_NOT_FETCHED)
                continue
            if pull.trailers.source_id != link.trailers.source_id:
                here = seen.get(link.url, set()) | self.identifier.trees_of(change)
                if pull.trailers.source_id not in here:
                    amended.append(pull)
                    continue
                self.links[change] = replace(link, trailers=pull.trailers, note=_brought_in(pull, self.identifier))
            if pull.edited_head and not looked_at(self.repository, str(pull.head)):
                raise _edited(remote.remote, pull)
        if amended:
            raise _amended(amended)

    def _linked(self, carried: Carried, on_branch: Sequence[Commit], landed: Mapping[str, Landing]) -> StackLinks:
        before = _positions(on_branch)
        stays: list[PullOutcome] = []
        goes: list[PullOutcome] = []
        by_change: dict[str, GhstackTrailers] = {}
        planned = {change.change.id: change for change in self.plan.changes}
        for change in self.plan.series.changes:
            link = self.links.get(change.id)
            landing = landed.get(link.url) if link else None
            if change.id in planned and planned[change.id].becomes_commit:
                fate = _staying(change.id, change.title, link, landing)
                if cut := self.unlinked.get(change.id):
                    fate = replace(fate, note=f"it was unlinked on the branch from {cut}, which stays open")
                if fate.becomes is PullAction.UPDATED and link:
                    by_change[change.id] = link.trailers
                stays.append(replace(fate, position=len(stays) + 1))
            elif link:
                goes.append(_going(change, link, landing, planned.get(change.id)))
        strays = zip(carried.unclaimed, _pulls(carried.unclaimed), strict=True)
        goes += [_stray(message.title, pull, landed) for message, pull in strays]
        return StackLinks(by_change, (*_with_positions(stays, before), *_with_positions(goes, before)))

    def _since(self) -> list[str]:
        """The newest commit below every version of the stack that is known here."""
        bases = [b for b in dict.fromkeys(e.onto for e in self.made) if self.repository.resolve_commit(b)]
        bases = bases or ([self.branch.tip] if self.branch.tip else [])
        if not bases:
            return []
        try:
            return self.repository.text("merge-base", "--octopus", self.plan.onto, *bases).split()
        except GitCommandError:  # no common history
            return []


def _unlinked(commits: Iterable[Commit], identities: _Identities) -> Iterator[str]:
    """Changes whose commit lost its trailers and nothing else: that is what ``ghstack unlink`` does."""
    for commit in commits:
        identity = identities[commit.hash]
        if identity is not None and identity.evidence is MatchReason.REWRITTEN and not extract(commit.message):
            yield identity.change


def _pulls(messages: Iterable[OldMessage]) -> list[PullRequest]:
    """The pull requests of submitted commits, one for each."""
    return [linked for message in messages if (linked := extract(message.text).pull_request)]


def _recorded(entry: Made) -> Earlier:
    commit = Commit(GitCommitHash(entry.commit), GitTreeHash(entry.tree), (), 0, entry.message)
    return Earlier(commit, Source.RECORD)


def _brought_in(pull: RemotePull, identifier: Identifier) -> str:
    if identifier.made_as(pull.orig) is not None:
        return "submitted from here since"
    return f"it was amended elsewhere, and the regenerated commit replaces that: git show {pull.orig.hash[:12]}"


def _amended(pulls: Sequence[RemotePull]) -> RefError:
    top = pulls[-1]
    names = ", ".join(f"{pull.url} ({pull.place}/orig, {pull.orig.hash[:12]})" for pull in pulls)
    return RefError(
        "the pull request was amended elsewhere since it was last submitted from here, and a regenerated stack would "
        "undo that; nothing was written",
        where=names,
        expected="the source id of a stack that was submitted or checked out here",
        found=f"ghstack-source-id: {top.trailers.source_id}",
        next_command=f"ghstack checkout {top.url}, take over what was amended, then run again",
    )


def _edited(remote: str, pull: RemotePull) -> RefError:
    return RefError(
        "somebody pushed to the head of the pull request since it was submitted; ghstack does not notice that, and a "
        "regenerated stack would undo it; nothing was written",
        where=pull.url,
        expected=f"tree {pull.trailers.source_id}",
        found=f"tree {pull.head_tree} in {pull.place}/head",
        next_command=f"git switch --detach {remote}/{pull.place}/head, take over what was edited, then run again",
    )


def _staying(change: str, title: str, link: Link | None, landing: Landing | None) -> PullOutcome:
    """The fate of a change that is a commit of the new stack."""
    if link is None:
        return PullOutcome(change, title, PullAction.NEW)
    pull = link.trailers.pull_request
    source, evidence = link.source.value, link.evidence.value
    if landing is not None and landing.reverted_by is None:
        note = f"{pull.url if pull else ''} {landing}, so what comes now needs a pull request of its own"
        return PullOutcome(change, title, PullAction.NEW, note=note)
    note = "; ".join(filter(None, [str(landing) if landing else "", link.note]))
    return PullOutcome(change, title, PullAction.UPDATED, pull, source=source, evidence=evidence, note=note)


def _going(change: Change, link: Link, landing: Landing | None, plan: ChangePlan | None) -> PullOutcome:
    """The fate of a submitted change that is no commit of the new stack.

    Args:
        plan: what became of the change in this run, ``None`` where it is not part of it.
    """
    pull = link.trailers.pull_request
    source, evidence = link.source.value, link.evidence.value
    fate = PullOutcome(change.id, change.title, PullAction.LEFT_OUT, pull, source=source, evidence=evidence)
    if landing is not None:
        return replace(fate, becomes=PullAction.LANDED, note=str(landing))
    if plan is None:
        return replace(fate, note="--only leaves out its change")
    close = close_command(pull) if pull else ""
    if plan.unmet:
        trees = in_words(plan.unmet)
        note = (
            f"its change is for trees in which {trees}; it stays open until the change is applicable again, or {close}"
        )
        return replace(fate, becomes=PullAction.NOT_APPLICABLE, note=note)
    note = "upstream has the change, but no commit names the pull request"
    return replace(fate, becomes=PullAction.LEFT_OPEN, note=note, next_command=close)


def _stray(title: str, pull: PullRequest, landed: Mapping[str, Landing]) -> PullOutcome:
    """The fate of a pull request that no change of the series answers to."""
    fate = PullOutcome("", title, PullAction.LEFT_OPEN, pull, source=Source.BRANCH.value)
    if pull.url in landed:
        return replace(fate, becomes=PullAction.LANDED, note=str(landed[pull.url]))
    note = "it stays behind: no change of the series answers to it"
    return replace(fate, note=note, next_command=close_command(pull))


def _positions(commits: Iterable[Commit]) -> dict[str, int]:
    """Address of a pull request to its place in the stack that the branch holds, 1 at the bottom."""
    urls = [linked.url for commit in commits if (linked := extract(commit.message).pull_request)]
    return {url: len(urls) - index for index, url in enumerate(urls)}


def _with_positions(fates: Sequence[PullOutcome], before: Mapping[str, int]) -> Iterator[PullOutcome]:
    """The fates with their earlier places; one that changed its place among those that stay is said to move."""

    def place(fate: PullOutcome) -> int:
        return before.get(fate.pull_request.url, 0) if fate.pull_request else 0

    kept = [fate for fate in fates if place(fate) and fate.position]
    was = {id(fate): rank for rank, fate in enumerate(sorted(kept, key=place))}
    now = {id(fate): rank for rank, fate in enumerate(kept)}
    for fate in fates:
        moved = id(fate) in was and was[id(fate)] != now[id(fate)]
        yield replace(fate, earlier_position=place(fate), moved=moved)
