"""The releases that are pinned; :mod:`patchstack.reference.found` finds any other."""

from __future__ import annotations

import datetime

from patchstack.reference.model import Artefact, DebianOrigin, ReferenceSpec, WheelOrigin
from patchstack.tree.git.model import GitTreeHash

FROM_WHEEL = (
    "Laid out from a binary release: Python files, torchgen, YAML files, templates and public headers; "
    "no .mm, .metal or .cpp files of ATen and no test folder unless a stand-in gives one."
)

_SPECS = (
    ReferenceSpec(
        name="2.11",
        version="2.11.0",
        released=datetime.date(2026, 3, 23),
        artefact=Artefact(
            "torch-2.11.0-cp311-cp311-macosx_11_0_arm64.whl",
            "7b6a60d48062809f58595509c524b88e6ddec3ebe25833d6462eeab81e5f2ce4",
        ),
        origin=WheelOrigin(platform="macosx_11_0_arm64", python="3.11"),
        notes=(FROM_WHEEL, "The last release before grid_sampler_2d_backward had an MPS entry."),
    ),
    ReferenceSpec(
        name="2.13",
        version="2.13.0",
        released=datetime.date(2026, 7, 3),
        artefact=Artefact(
            "torch-2.13.0-cp311-cp311-macosx_14_0_arm64.whl",
            "e76f9bcecc52b8ff711239a2f7547d5353df95878ab232f0773c1d95928b92f8",
        ),
        origin=WheelOrigin(platform="macosx_14_0_arm64", python="3.11", accepts_installed=True),
        source_tree=GitTreeHash("4dd5be5ca31ab253d8e87b14dee037237f4a3c62"),
        notes=(FROM_WHEEL, "grid_sampler_2d_backward and grid_sampler_3d_backward have MPS entries here."),
    ),
    ReferenceSpec(
        name="2.14",
        version="2.14.1",
        released=datetime.date(2026, 9, 30),
        artefact=Artefact(
            "torch-2.14.1-cp311-cp311-macosx_14_0_arm64.whl",
            "b6074b130fd26bc50f5d171f07dfed70db22dd0c354ab34767729249f9e0f042",
        ),
        origin=WheelOrigin(platform="macosx_14_0_arm64", python="3.11"),
        stand_ins_of="2.13",
        notes=(FROM_WHEEL,),
    ),
    ReferenceSpec(
        name="2.6",
        version="2.6.0",
        released=datetime.date(2025, 1, 29),
        artefact=Artefact(
            "pytorch_2.6.0+dfsg.orig.tar.xz",
            "099a9601bc40d67656e75735c44abedb0fbe92d08817852ab7472eebb7e6ddff",
        ),
        origin=DebianOrigin(suite="trixie", package="pytorch", package_version="2.6.0+dfsg-7"),
        notes=(
            "The complete source as Debian repacked it: some third-party folders and a few dot files are left out.",
        ),
    ),
)

SPECS: dict[str, ReferenceSpec] = {spec.name: spec for spec in _SPECS}
