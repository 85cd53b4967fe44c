#define TORCH_ASSERT_ONLY_METHOD_OPERATORS
#include <ATen/MemoryOverlap.h>
#include <ATen/core/Tensor.h>
#include <ATen/mps/MPSProfiler.h>
#include <ATen/native/mps/OperationUtils.h>

#ifndef AT_PER_OPERATOR_HEADERS
#include <ATen/Functions.h>
#include <ATen/NativeFunctions.h>
#else
#include <ATen/ops/empty.h>
#include <ATen/ops/take_native.h>
#endif

namespace at::native {
using namespace mps;

#ifndef PYTORCH_JIT_COMPILE_SHADERS
static auto& lib = MetalShaderLibrary::getBundledLibrary();
#else
#include <ATen/native/mps/Take_metallib.h>
#endif

Tensor& take_out_mps(const Tensor& self, const Tensor& index, Tensor& out) {
  TORCH_CHECK(index.scalar_type() == kLong, "take(): Expected a long tensor for index, but got ", index.scalar_type());
  TORCH_CHECK(self.scalar_type() == out.scalar_type(), "take(): self and out must have the same dtype");
  TORCH_CHECK_INDEX(self.numel() || !index.numel(), "take(): tried to take from an empty tensor");
  at::assert_no_internal_overlap(out);
  at::assert_no_overlap(out, self);
  at::assert_no_overlap(out, index);
  out.resize_(index.sizes());
  if (index.numel() == 0) {
    return out;
  }
  const auto values = self.contiguous();
  const auto indices = index.contiguous();
  const auto result = out.is_contiguous() ? out : at::empty(out.sizes(), out.options());
  const int64_t count = self.numel();
  const auto kernel = "take_" + scalarToMetalTypeString(values);
  auto pipeline = lib.getPipelineStateForFunc(kernel);
  auto stream = getCurrentMPSStream();
  dispatch_sync_with_rethrow(stream->queue(), ^() {
    @autoreleasepool {
      auto encoder = stream->commandEncoder();
      getMPSProfiler().beginProfileKernel(pipeline, kernel, {values, indices});
      [encoder setComputePipelineState:pipeline];
      mtl_setArgs(encoder, result, values, indices, count);
      mtl_dispatch1DJob(encoder, pipeline, result.numel());
      getMPSProfiler().endProfileKernel(pipeline);
    }
  });
  if (!out.is_same(result)) {
    out.copy_(result);
  }
  return out;
}

Tensor take_mps(const Tensor& self, const Tensor& index) {
  auto out = at::empty(index.sizes(), self.options());
  take_out_mps(self, index, out);
  return out;
}
} // namespace at::native
