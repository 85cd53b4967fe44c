// Makes `mps` a device on Linux: allocator, guard, hooks, the aten ops that touch memory, and CPU for all others.
//
// A storage's data pointer is the buffer object, as on macOS. Nothing may dereference it; what happens on the host goes
// through a CPU tensor over the buffer's memory.
#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <ATen/detail/MPSHooksInterface.h>
#include <ATen/mps/EmptyTensor.h>
#include <ATen/mps/MPSDevice.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/util/ScopeExit.h>
#include <torch/library.h>

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <utility>

#include "objects.h"

namespace at::native::mps {
__attribute__((weak)) Tensor gatherViewTensor(const Tensor& src, Tensor& dst);
__attribute__((weak)) Tensor& scatterViewTensor(const Tensor& src, Tensor& output);
} // namespace at::native::mps

namespace {
using namespace at;

const Device kTheDevice(kMPS, 0);

StandinBuffer* buffer_of(const TensorBase& tensor) {
  return (StandinBuffer*)tensor.storage().mutable_data();
}

struct StandinAllocator final : Allocator {
  DataPtr allocate(size_t bytes) override {
    StandinBuffer* made = [StandinBuffer withLength:bytes];
    return {(void*)made, (void*)made, &forget, kTheDevice};
  }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    std::memcpy(((StandinBuffer*)to)->memory, ((const StandinBuffer*)from)->memory, bytes);
    [(StandinBuffer*)to markDefined];
  }
  DeleterFnPtr raw_deleter() const override {
    return &forget;
  }
  static void forget(void* buffer) {
    [(StandinBuffer*)buffer release];
  }
};

StandinAllocator& allocator() {
  static auto* const one = new StandinAllocator;
  return *one;
}

// The tensor's memory as a CPU tensor. `writes` marks the buffer as defined: the host is trusted to write all it says.
Tensor on_host(const Tensor& tensor, bool writes = false) {
  if (!tensor.is_mps()) {
    return tensor;
  }
  StandinBuffer* buffer = buffer_of(tensor);
  const auto options = tensor.options().device(kCPU);
  if (!buffer) {
    return at::empty(tensor.sizes(), options);
  }
  TORCH_CHECK(!buffer->vast, "stand-in device: a tensor of ", buffer->bytes, " bytes is too large for the host");
  if (writes) {
    [buffer markDefined];
  }
  Tensor made = at::from_blob(buffer->memory + tensor.storage_offset() * tensor.element_size(), tensor.sizes(),
                              tensor.strides(), options);
  // Views that conjugate or negate are known by a bit of the tensor alone.
  made._set_conj(tensor.is_conj());
  made._set_neg(tensor.is_neg());
  return made.set_requires_grad(false);
}

void check_dtype(ScalarType type) {
  TORCH_CHECK_TYPE(type != kDouble && type != kComplexDouble, "there are no 64-bit floats on MPS");
}

// Metal's buffers are untyped; remembering what each was made for lets a dispatch check the kernel's pointer types.
Tensor with_dtype(Tensor tensor) {
  buffer_of(tensor)->dtype = static_cast<uint64_t>(tensor.scalar_type());
  return tensor;
}

Tensor empty_sizes(IntArrayRef sizes, std::optional<ScalarType> type, std::optional<Layout> layout,
                   std::optional<Device> device, std::optional<bool> pinned, std::optional<MemoryFormat> format) {
  check_dtype(dtype_or_default(type));
  return with_dtype(at::detail::empty_generic(sizes, &allocator(), DispatchKeySet(DispatchKey::MPS),
                                              dtype_or_default(type), format));
}
Tensor empty_with_strides(IntArrayRef sizes, IntArrayRef strides, std::optional<ScalarType> type,
                          std::optional<Layout> layout, std::optional<Device> device, std::optional<bool> pinned) {
  check_dtype(dtype_or_default(type));
  return with_dtype(at::detail::empty_strided_generic(sizes, strides, &allocator(), DispatchKeySet(DispatchKey::MPS),
                                                      dtype_or_default(type)));
}

// An op that runs on the CPU gets all its arguments there, also those that it only writes.
thread_local bool in_fallback = false;

// Reading on the host what no kernel wrote is how too few threads show.
void check_written(const Tensor& tensor) {
  if (in_fallback || !tensor.is_mps() || !tensor.numel() || !buffer_of(tensor) || buffer_of(tensor)->vast) {
    return;
  }
  const int64_t item = tensor.element_size();
  auto strides = tensor.strides().vec();
  auto sizes = tensor.sizes().vec();
  for (auto& stride : strides) {
    stride *= item;
  }
  sizes.push_back(item);
  strides.push_back(1);
  const Tensor state =
      at::from_blob(buffer_of(tensor)->shadow + tensor.storage_offset() * item, sizes, strides, at::kByte);
  const int64_t unwritten = state.lt(2).any(-1).sum().item<int64_t>();
  if (unwritten) {
    standin::note("unwritten", c10::str(unwritten, " of ", tensor.numel(), " elements of a result of sizes ",
                                        tensor.sizes(), " were never written"));
  }
}

Tensor& copy_into(Tensor& to, const Tensor& from, bool non_blocking) {
  check_written(from);
  // As Copy.mm does, where the tree's View.mm is in the device: strided copies by its gather and scatter kernels.
  const bool same = from.scalar_type() == to.scalar_type() && from.sizes() == to.sizes() &&
      from.is_conj() == to.is_conj() && from.is_neg() == to.is_neg();
  if (native::mps::gatherViewTensor && same && from.numel() && from.is_mps() && !from.is_contiguous()) {
    Tensor dense = at::empty(from.sizes(), from.options());
    native::mps::gatherViewTensor(from, dense);
    return copy_into(to, dense, non_blocking);
  }
  if (native::mps::scatterViewTensor && same && to.numel() && to.is_mps() && !to.is_contiguous() && from.is_mps()) {
    Tensor target = to;
    native::mps::scatterViewTensor(from, target);
    return to;
  }
  on_host(to, true).copy_(on_host(from));
  return to;
}
Tensor copy_from(const Tensor& from, const Tensor& to, bool non_blocking) {
  Tensor target = to;
  return copy_into(target, from, non_blocking);
}
Tensor copy_from_and_resize(const Tensor& from, const Tensor& to) {
  if (to.sizes() != from.sizes()) {
    to.resize_(from.sizes());
  }
  return copy_from(from, to, false);
}
Tensor& zero(Tensor& tensor) {
  StandinBuffer* buffer = tensor.numel() ? buffer_of(tensor) : nil;
  if (buffer && buffer->vast && tensor.nbytes() == buffer->bytes) {
    const size_t pages = buffer->bytes - buffer->bytes % 4096;
    madvise(buffer->memory, pages, MADV_DONTNEED); // zeros again
    std::memset(buffer->memory + pages, 0, buffer->bytes - pages);
    return tensor;
  }
  on_host(tensor, true).zero_();
  return tensor;
}
Tensor& fill(Tensor& tensor, const Scalar& value) {
  on_host(tensor, true).fill_(value);
  return tensor;
}
Scalar scalar_of(const Tensor& tensor) {
  check_written(tensor);
  return on_host(tensor).item();
}
const Tensor& resize(const Tensor& tensor, IntArrayRef sizes, std::optional<MemoryFormat> format) {
  auto* const impl = tensor.unsafeGetTensorImpl();
  impl->set_sizes_contiguous(sizes);
  const size_t bytes = (tensor.numel() + tensor.storage_offset()) * tensor.element_size();
  if (bytes > tensor.storage().nbytes()) {
    const Storage& storage = tensor.storage();
    storage.set_data_ptr_noswap(allocator().allocate(bytes));
    storage.set_nbytes(bytes);
  }
  return tensor;
}
// As native_functions.yaml has it: without the namespace, which is aten.
std::string overload_of(const c10::OperatorHandle& op) {
  const std::string name = c10::toString(op.operator_name());
  return name.substr(name.rfind(':') + 1);
}
void run_on_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const bool outer = std::exchange(in_fallback, true);
  const auto restore = c10::make_scope_exit([outer] { in_fallback = outer; });
  standin_told_of_call(overload_of(op).c_str(), STANDIN_ON_CPU);
  native::cpu_fallback(op, stack);
}

TORCH_LIBRARY_IMPL(aten, MPS, m) {
  m.impl("empty.memory_format", empty_sizes);
  m.impl("empty_strided", empty_with_strides);
  m.impl("as_strided", TORCH_FN(native::as_strided_tensorimpl));
  m.impl("view", TORCH_FN(native::view));
  m.impl("_reshape_alias", TORCH_FN(native::_reshape_alias));
  m.impl("unfold", TORCH_FN(native::unfold));
  m.impl("_copy_from", copy_from);
  m.impl("_copy_from_and_resize", copy_from_and_resize);
  m.impl("copy_", copy_into);
  m.impl("zero_", zero);
  m.impl("fill_.Scalar", fill);
  m.impl("_local_scalar_dense", scalar_of);
  m.impl("resize_", resize);
}
TORCH_LIBRARY_IMPL(_, MPS, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&run_on_cpu>());
}

// Everything runs at once: streams and events have nothing to wait for.
struct StandinGuard final : c10::impl::DeviceGuardImplInterface {
  DeviceType type() const override {
    return kMPS;
  }
  Device exchangeDevice(Device device) const override {
    return kTheDevice;
  }
  Device getDevice() const override {
    return kTheDevice;
  }
  void setDevice(Device device) const override {}
  void uncheckedSetDevice(Device device) const noexcept override {}
  Stream getStream(Device device) const override {
    return Stream(Stream::DEFAULT, kTheDevice);
  }
  Stream getDefaultStream(Device device) const override {
    return Stream(Stream::DEFAULT, kTheDevice);
  }
  Stream exchangeStream(Stream stream) const override {
    return stream;
  }
  DeviceIndex deviceCount() const noexcept override {
    return 1;
  }
  void record(void** event, const Stream& stream, const DeviceIndex index, const c10::EventFlag flag) const override {}
  void block(void* event, const Stream& stream) const override {}
  bool queryEvent(void* event) const override {
    return true;
  }
  void destroyEvent(void* event, const DeviceIndex index) const noexcept override {}
};

struct StandinHooks final : MPSHooksInterface {
  // Up to 2.11 the registry passes it an empty struct.
  template <typename... Arguments>
  explicit StandinHooks(Arguments...) {}
  void init() const override {}
  bool hasMPS() const override {
    return true;
  }
  bool isAvailable() const override {
    return true;
  }
  bool isBuilt() const override {
    return true;
  }
  bool isOnMacOSorNewer(unsigned major, unsigned minor) const override {
    return true;
  }
  bool hasPrimaryContext(DeviceIndex index) const override {
    return true;
  }
  Allocator* getMPSDeviceAllocator() const override {
    return &allocator();
  }
  void deviceSynchronize() const override {}
  DeviceIndex deviceCount() const override {
    return 1;
  }
  DeviceIndex getCurrentDevice() const override {
    return 0;
  }
};

const bool allocator_is_set = [] {
  c10::SetAllocator(kMPS, &allocator(), 1);
  return true;
}();

// A torch that was built for CUDA has that for its one accelerator, also where there is no such GPU, and refuses backward
// passes of a second one. This process is for the stand-in device alone: for it, torch is as if built without CUDA.
const bool cuda_is_off = [] {
  setenv("CUDA_VISIBLE_DEVICES", "", 1);
  static const CUDAHooksInterface none;
  auto* hooks = const_cast<CUDAHooksInterface*>(&at::detail::getCUDAHooks());
  std::memcpy(static_cast<void*>(hooks), static_cast<const void*>(&none), sizeof(void*)); // its table of functions
  return true;
}();

} // namespace

C10_REGISTER_GUARD_IMPL(MPS, StandinGuard)
namespace at {
C10_REGISTER_TYPED_CLASS(MPSHooksRegistry, "MPSHooks", StandinHooks)
} // namespace at

namespace at::mps {
Allocator* GetMPSAllocator() {
  return &allocator();
}
// Up to 2.11.
Allocator* GetMPSAllocator(bool shared) {
  return &allocator();
}
} // namespace at::mps

namespace at::detail {
TensorBase empty_mps(IntArrayRef sizes, const TensorOptions& options) {
  return empty_sizes(sizes, optTypeMetaToScalarType(options.dtype_opt()), {}, {}, {}, options.memory_format_opt());
}
TensorBase empty_mps(IntArrayRef sizes, std::optional<ScalarType> type, std::optional<Layout> layout,
                     std::optional<Device> device, std::optional<bool> pinned, std::optional<MemoryFormat> format) {
  return empty_sizes(sizes, type, layout, device, pinned, format);
}
TensorBase empty_strided_mps(IntArrayRef sizes, IntArrayRef strides, const TensorOptions& options) {
  return empty_with_strides(sizes, strides, optTypeMetaToScalarType(options.dtype_opt()), {}, {}, {});
}
TensorBase empty_strided_mps(IntArrayRef sizes, IntArrayRef strides, ScalarType type, std::optional<Device> device) {
  return empty_with_strides(sizes, strides, type, {}, {}, {});
}
} // namespace at::detail
