"""The state of a resolve, in the git directory: one file that is replaced as a whole."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, replace

from patchstack.errors import TreeError
from patchstack.resolve.model import ABORT, Aim, OpenFile, ResolveError, State
from patchstack.stack.record import FOLDER
from patchstack.tree.git import Repository


class StateFile:
    """The file, in the git directory that all worktrees share."""

    def __init__(self, repository: Repository) -> None:
        self._file = repository.common_dir / FOLDER / "resolve.json"

    def read(self) -> State | None:
        """The state; ``None`` where nothing is being resolved.

        Raises:
            TreeError: the file is there and cannot be read.
        """
        try:
            facts = json.loads(self._file.read_bytes())
            files = tuple(OpenFile(**one) for one in facts.pop("files"))
            aim = facts.pop("aim")
            lists = {key: tuple(value) for key, value in aim.items() if isinstance(value, list)}
            return State(**{**facts, "files": files, "aim": Aim(**{**aim, **lists})})
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, LookupError, AttributeError) as error:
            problem = "the state of the resolve cannot be read"
            raise TreeError(problem, where=str(self._file), found=str(error), next_command=ABORT) from None

    def require(self) -> State:
        """The state.

        Raises:
            ResolveError: nothing is being resolved.
        """
        state = self.read()
        if state is None:
            raise ResolveError("nothing is being resolved here", next_command="apply-stack --onto REF --resolve")
        return state

    def write(self, state: State) -> State:
        """Replace the state, and wait until it is on disk.

        Raises:
            TreeError: the git directory cannot be written.
        """
        unfinished = self._file.with_suffix(".new")
        try:
            self._file.parent.mkdir(exist_ok=True)
            with unfinished.open("w", encoding="utf-8") as out:
                json.dump(asdict(replace(state, results=dict(state.results))), out, indent=1)
                out.flush()
                os.fsync(out.fileno())
            os.replace(unfinished, self._file)
        except OSError as error:
            problem = "the git directory cannot be written"
            raise TreeError(problem, where=str(self._file), found=str(error)) from None
        return state

    def remove(self) -> None:
        """Forget the resolve."""
        for file in (self._file, self._file.with_suffix(".new")):
            file.unlink(missing_ok=True)
