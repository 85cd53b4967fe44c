"""Taking a proof's tensors to a device and back, seen through a kernel that is Python."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from stackproof.engines.gpu import device_library as module
from stackproof.engines.gpu.device_library import DeviceLibrary, StorageTooLargeError
from stackproof.ops.layouts import sliced, virtual_tensor


class Recorder:
    """A library whose kernels note their arguments and write 7 to every element of the first."""

    def __init__(self) -> None:
        self.arguments: tuple[Any, ...] = ()
        self.threads: object = None

    def __getattr__(self, name: str) -> Any:
        def kernel(*arguments: Any, threads: object, group_size: object) -> None:
            self.arguments, self.threads = arguments, threads
            arguments[0].fill_(7)

        return kernel


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


def test_what_a_kernel_writes_comes_back_and_gaps_stay_as_they_were(recorder: Recorder) -> None:
    tensor = sliced(torch.zeros(2, 3))
    whole = torch.empty(0).set_(tensor.untyped_storage())
    gaps = whole.isnan().sum().item()
    DeviceLibrary(recorder, "cpu").any_kernel(tensor, threads=6)
    assert (tensor == 7).all()
    assert whole.isnan().sum().item() == gaps > 0
    assert recorder.threads == 6


def test_the_copy_has_the_same_strides_offset_and_bytes_around_it(recorder: Recorder) -> None:
    tensor = sliced(torch.rand(2, 3, dtype=torch.float16))
    DeviceLibrary(recorder, "cpu").any_kernel(torch.zeros(1), tensor, threads=1)
    copy = recorder.arguments[1]
    assert copy.data_ptr() != tensor.data_ptr()
    assert (copy.stride(), copy.storage_offset()) == (tensor.stride(), tensor.storage_offset())
    assert copy.untyped_storage().nbytes() == tensor.untyped_storage().nbytes()
    assert copy.equal(tensor)


def test_two_views_of_one_storage_stay_views_of_one_storage(recorder: Recorder) -> None:
    whole = torch.zeros(4)
    DeviceLibrary(recorder, "cpu").any_kernel(whole[:2], whole[1:], threads=1)
    assert recorder.arguments[1].tolist() == [7, 0, 0]
    assert whole.tolist() == [7, 7, 0, 0]


def test_a_struct_becomes_a_tensor_of_its_bytes(recorder: Recorder) -> None:
    DeviceLibrary(recorder, "cpu").any_kernel(torch.zeros(1), b"\x01\x02\xff", 5, threads=1)
    assert recorder.arguments[1].tolist() == [1, 2, 255]
    assert recorder.arguments[1].dtype is torch.uint8
    assert recorder.arguments[2] == 5


def test_a_tensor_that_is_address_space_only_is_refused(recorder: Recorder) -> None:
    huge = virtual_tensor((2, 1), (module.LARGEST_STORAGE, 1), torch.float32)
    with pytest.raises(StorageTooLargeError):
        DeviceLibrary(recorder, "cpu").any_kernel(huge, threads=1)
