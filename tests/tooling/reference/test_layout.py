from __future__ import annotations

import pytest

from patchstack.reference.layout import source_members, source_path, without_stable_guard

OPENS = b"#if !defined(TORCH_STABLE_ONLY) && !defined(TORCH_TARGET_VERSION)\n"
CLOSES = b'\n#else\n#error "no TORCH_STABLE_ONLY"\n#endif  // !defined(TORCH_STABLE_ONLY)\n'


@pytest.mark.parametrize(
    ("member", "path"),
    [
        ("torchgen/gen.py", "torchgen/gen.py"),
        ("torchgen/packaged/ATen/native/native_functions.yaml", "aten/src/ATen/native/native_functions.yaml"),
        ("torchgen/packaged/ATen/templates/Functions.h", "aten/src/ATen/templates/Functions.h"),
        ("torchgen/packaged/autograd/derivatives.yaml", "tools/autograd/derivatives.yaml"),
        ("torch/include/ATen/native/mps/kernels/GridSampler.h", "aten/src/ATen/native/mps/kernels/GridSampler.h"),
        ("torch/include/c10/metal/utils.h", "c10/metal/utils.h"),
        (
            "torch/include/torch/csrc/inductor/aoti_torch/generated/c_shim_mps.h",
            "torch/csrc/inductor/aoti_torch/generated/c_shim_mps.h",
        ),
        ("torch/include/torch/library.h", "torch/library.h"),
        ("torch/testing/_internal/common_mps.py", "torch/testing/_internal/common_mps.py"),
        ("torch-2.11.0.dist-info/licenses/LICENSE", "LICENSE"),
        ("torch-2.13.0+cpu.dist-info/NOTICE", "NOTICE"),
    ],
)
def test_an_installed_file_goes_back_to_its_source_path(member: str, path: str) -> None:
    assert source_path(member) == path


@pytest.mark.parametrize(
    "member",
    [
        "torch/lib/libtorch_cpu.dylib",
        "torch/_C.cpython-311-darwin.so",
        "torch/bin/protoc",
        "torch/share/cmake/Torch/TorchConfig.cmake",
        "torch/include/fmt/format.h",
        "torch/__pycache__/functional.cpython-311.pyc",
        "torch-2.13.0.dist-info/licenses/third_party/fmt/LICENSE",
        "numpy/__init__.py",
    ],
)
def test_what_is_no_source_of_pytorch_is_left_out(member: str) -> None:
    assert source_path(member) is None


@pytest.mark.parametrize(
    "member",
    [
        "torch/include/ATen/ops/add.h",
        "torch/include/ATen/MPSFunctions_inl.h",
        "torch/include/ATen/Functions.h",
        "torch/include/ATen/Config.h",
        "torch/include/ATen/core/TensorBody.h",
        "torch/include/c10/macros/cmake_macros.h",
        "torch/include/torch/csrc/autograd/generated/VariableType.h",
        "torch/version.py",
        "torch/_C/__init__.pyi",
    ],
)
def test_what_the_build_makes_is_left_out_as_in_a_checkout(member: str) -> None:
    assert source_path(member) is None


def test_a_header_that_is_there_twice_is_taken_from_its_source_path() -> None:
    twice = ["torch/include/torch/csrc/a.h", "torch/csrc/a.h"]
    assert source_members(twice) == source_members(reversed(twice)) == {"torch/csrc/a.h": "torch/csrc/a.h"}


@pytest.mark.parametrize(
    "body", [b"int x;\n", b"int x;", b"", b"#if A\n#else\n#error TORCH_STABLE_ONLY\n#endif\nint x;\n"]
)
def test_the_packaging_wrapper_comes_off_and_nothing_else(body: bytes) -> None:
    assert without_stable_guard(OPENS + body + CLOSES) == body


@pytest.mark.parametrize("data", [b"int x;\n", OPENS + b"int x;\n", b"int x;\n" + CLOSES, OPENS + CLOSES + b"int x;\n"])
def test_half_a_wrapper_is_left_alone(data: bytes) -> None:
    assert without_stable_guard(data) == data
