// Only the fragments land; the rest is there so that the file reads alone.
// fragment: profiler_include
#include <ATen/mps/MPSProfiler.h>
// end fragment
#include <ATen/native/mps/OperationUtils.h>
#include <ATen/ops/linspace_native.h>
// fragment: native_include
#include <ATen/ops/logspace_native.h>
// end fragment

namespace at::native {
// fragment: library
#ifndef PYTORCH_JIT_COMPILE_SHADERS
static auto& logspace_library = mps::MetalShaderLibrary::getBundledLibrary();
#else
namespace logspace_shaders {
#include <ATen/native/mps/Logspace_metallib.h>
} // namespace logspace_shaders
static auto& logspace_library = logspace_shaders::lib;
#endif
// end fragment

// fragment: logspace_out_mps
Tensor& logspace_out_mps(const Scalar& start, const Scalar& end, int64_t steps, double base, Tensor& result) {
  TORCH_CHECK(steps >= 0, "number of steps must be non-negative");
  if (result.numel() != steps) {
    result.resize_({steps});
  }
  if (steps == 0) {
    return result;
  }
  const auto values = result.is_contiguous() ? result : result.contiguous();
  const auto kernel = "logspace_" + mps::scalarToMetalTypeString(values);
  const std::array<float, 4> ends = {start.to<float>(), end.to<float>(), static_cast<float>(base), 0.0f};
  auto pipeline = logspace_library.getPipelineStateForFunc(kernel);
  auto stream = mps::getCurrentMPSStream();
  mps::dispatch_sync_with_rethrow(stream->queue(), ^() {
    @autoreleasepool {
      auto encoder = stream->commandEncoder();
      mps::getMPSProfiler().beginProfileKernel(pipeline, kernel, {values});
      [encoder setComputePipelineState:pipeline];
      mps::mtl_setArgs(encoder, values, ends, static_cast<uint32_t>(steps));
      mps::mtl_dispatch1DJob(encoder, pipeline, steps);
      mps::getMPSProfiler().endProfileKernel(pipeline);
    }
  });
  if (!result.is_same(values)) {
    result.copy_(values);
  }
  return result;
}
// end fragment
} // namespace at::native
