"""The process that runs gates: takes a job, sends progress and one answer, takes the next.

It leads a session of its own, so that the terminal's Ctrl-C reaches ``validate-stack`` alone, which then ends this
process with everything below it. Should ``validate-stack`` itself be killed, the lifeline breaks, and the process takes
all that it started down with it.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback
from multiprocessing.connection import Connection

from patchstack.cache import not_executable, unwritable, write_refusal
from patchstack.confine import take
from patchstack.confine.policy import OPTION, TreeCodeForbiddenError, tree_code
from patchstack.errors import PatchstackError
from patchstack.tree.git import Repository
from stackproof.engines.errors import ToolchainError
from stackproof.engines.pool.processes import WorkerStartError
from stackproof.gates.spec import Keeps
from stackproof.gates.table import GATES
from stackproof.model import GateContext, GateResult, Verdict
from stackproof.packages import MissingPackageError, missing
from stackproof.runner.confinement import with_confinement
from stackproof.runner.messages import Answer, Ended, Job, NotStarted, PackagesMissing, Progressed, Raised
from stackproof.runner.processes import kill_own_family

_OWN_PACKAGES = ("stackproof", "patchstack")


def main(pipe_descriptor: int, lifeline_descriptor: int) -> None:
    """Serve until the other end closes the pipe.

    Args:
        pipe_descriptor: of a duplex connection.
        lifeline_descriptor: reading end of a pipe that nobody writes to; it ends when ``validate-stack`` does.
    """
    threading.Thread(target=_follow, args=(lifeline_descriptor,), daemon=True).start()
    # Whatever way the parent was started (nohup, a shell's background job): an interrupt must arrive here.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        serve(Connection(pipe_descriptor))
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)


def serve(pipe: Connection) -> None:
    """Answer every job that comes through the pipe."""
    while True:
        try:
            job: Job = pipe.recv()
        except EOFError:
            return
        answer = _answer(job, pipe)
        try:
            pipe.send(answer)
        except (BrokenPipeError, KeyboardInterrupt):
            raise
        except Exception as error:  # what a gate put into its result cannot be sent
            pipe.send(_raised(error))


def _answer(job: Job, pipe: Connection) -> Answer:
    if lacking := missing(job.spec.needs):
        return PackagesMissing(lacking)
    if job.spec.runs and not (job.tree_code or job.spec.can_do_without):
        reason = f"it runs {job.spec.runs}, which {OPTION} forbids"
        return Ended(GateResult(job.spec.name, Verdict.NOT_RUN, reason=reason))
    try:
        refusal = _refused_by_cache(job)
        if refusal:
            return _not_run(job, refusal)
        take()
        with tree_code(allowed=job.tree_code):
            return Ended(with_confinement(_run(job, pipe), take()))
    except TreeCodeForbiddenError as error:
        return _not_run(job, error)
    except (ToolchainError, MissingPackageError) as error:  # this machine lacks something; the stack is not judged
        return _not_run(job, error)
    except OSError as error:
        refusal = write_refusal(error, job.cache)
        return _not_run(job, refusal) if refusal else _raised(error)
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        return _raised(error) if not package or package in _OWN_PACKAGES else PackagesMissing((package,))
    except WorkerStartError as error:
        return NotStarted(f"{error}: the stack was not judged")
    except (Exception, SystemExit) as error:
        return _raised(error)


def _refused_by_cache(job: Job) -> PatchstackError | None:
    """Why the gate cannot keep what it builds where it would; found now, not charged to a kernel later."""
    keeps = job.spec.keeps
    if keeps is Keeps.NOTHING:
        return None
    refusal = not_executable(job.cache) if keeps is Keeps.PROGRAMS else None
    return refusal or unwritable(job.cache, (spec.name for spec in GATES))


def _not_run(job: Job, error: PatchstackError) -> Ended:
    return Ended(GateResult(job.spec.name, Verdict.NOT_RUN, reason=str(error)))


def _run(job: Job, pipe: Connection) -> GateResult:
    def progress(done: int, total: int, what: str) -> None:
        pipe.send(Progressed(done, total, what))

    with Repository.open(job.repository) as repository:
        context = GateContext(repository, job.base, job.head, job.cache, jobs=job.jobs, progress=progress)
        return job.spec.judge(context, job.options)


def _raised(error: BaseException) -> Raised:
    return Raised(type(error).__name__, str(error), "".join(traceback.format_exception(error)))


def _follow(lifeline: int) -> None:
    while os.read(lifeline, 1):
        pass
    kill_own_family()
