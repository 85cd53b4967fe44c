"""Reading the files of a release out of a wheel, an installed torch or a source tarball.

Each reader yields :class:`SourceFile` one at a time: a release is 60 to 140 MB of text, and git takes it as a stream.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import importlib.util
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from patchstack.errors import TreeError
from patchstack.reference.layout import source_members, without_stable_guard
from patchstack.reference.model import SourceFile
from patchstack.tree.git.model import MODE_EXECUTABLE, MODE_FILE, MODE_SYMLINK


def files_of_wheel(wheel: Path) -> Iterator[SourceFile]:
    """The source files of a wheel, sorted by path. Libraries are never unpacked.

    Raises:
        TreeError: the wheel cannot be read.
    """
    try:
        with zipfile.ZipFile(wheel) as archive:
            for path, member in source_members(archive.namelist()).items():
                yield SourceFile(path, without_stable_guard(archive.read(member)), MODE_FILE)
    except zipfile.BadZipFile as error:
        raise TreeError("not a readable wheel", where=str(wheel), found=str(error)) from None


@dataclass(frozen=True)
class InstalledTorch:
    """A torch that is installed for this interpreter; found without importing it.

    Attributes:
        version: full version with its local part (``2.13.0+cpu``).
        site: the folder that holds ``torch`` and ``torchgen``.
        record: the installer's list of files and digests.
    """

    version: str
    site: Path
    record: Path

    def record_digest(self) -> str:
        """SHA-256 of the installer's list; changes when another build is installed."""
        return hashlib.sha256(self.record.read_bytes()).hexdigest()


def find_installed(minor: str) -> InstalledTorch | None:
    """The installed torch when it is of that minor version (``2.13``) and its files can be verified, else None."""
    found = importlib.util.find_spec("torch")
    if found is None or found.origin is None:
        return None
    site = Path(found.origin).parent.parent
    for record in sorted(site.glob(f"torch-{minor}.*.dist-info/RECORD")):
        version = record.parent.name[len("torch-") : -len(".dist-info")]
        return InstalledTorch(version, site, record)
    return None


def files_of_installed(torch: InstalledTorch) -> Iterator[SourceFile]:
    """The source files of an installed torch, sorted by path, each checked against the installer's digest.

    Raises:
        TreeError: a file is missing or is not what was installed.
    """
    with torch.record.open(newline="", encoding="utf-8") as lines:
        digests = {row[0]: row[1] for row in csv.reader(lines) if len(row) > 1}
    for path, member in source_members(digests).items():
        place = torch.site / member
        data = place.read_bytes() if place.is_file() else None
        found = "no such file" if data is None else _record_digest(data)
        if data is None or found != digests[member]:
            raise TreeError(
                "the installed torch was changed after it was installed",
                where=str(place),
                expected=digests[member],
                found=found,
                next_command=f"python -m pip install --force-reinstall --no-deps torch=={torch.version}",
            )
        yield SourceFile(path, without_stable_guard(data), MODE_FILE)


def _record_digest(data: bytes) -> str:
    encoded = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"sha256={encoded}"


def files_of_tarball(tarball: Path) -> Iterator[SourceFile]:
    """Every file and symbolic link of a source tarball, its single top folder taken off, in the archive's order.

    Raises:
        TreeError: the tarball cannot be read, or holds something that git does not.
    """
    try:
        # Not a stream ("r|*"): that takes the end of a truncated file for the end of the archive.
        with tarfile.open(tarball, "r:*") as archive:
            for member in archive:
                file = _tar_member(archive, member)
                if file is not None:
                    yield file
    except (tarfile.TarError, EOFError, OSError) as error:
        raise TreeError("not a readable tarball", where=str(tarball), found=str(error)) from None


def _tar_member(archive: tarfile.TarFile, member: tarfile.TarInfo) -> SourceFile | None:
    path = member.name.removeprefix("./").partition("/")[2]
    if member.isdir():
        return None
    if member.issym():
        return SourceFile(path, member.linkname.encode(), MODE_SYMLINK)
    content = archive.extractfile(member) if member.isreg() else None
    if content is None or not path:
        raise TreeError("a tarball member that git cannot hold", where=member.name)
    return SourceFile(path, content.read(), MODE_EXECUTABLE if member.mode & 0o100 else MODE_FILE)
