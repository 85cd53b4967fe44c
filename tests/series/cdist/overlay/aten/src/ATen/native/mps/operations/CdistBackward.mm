#define TORCH_ASSERT_ONLY_METHOD_OPERATORS
#include <ATen/ExpandUtils.h>
#include <ATen/core/Tensor.h>
#include <ATen/mps/MPSProfiler.h>
#include <ATen/native/mps/OperationUtils.h>
#include <ATen/native/mps/kernels/CdistBackward.h>

#ifndef AT_PER_OPERATOR_HEADERS
#include <ATen/Functions.h>
#include <ATen/NativeFunctions.h>
#else
#include <ATen/ops/_cdist_backward_native.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros_like.h>
#endif

namespace at::native {

#ifndef PYTORCH_JIT_COMPILE_SHADERS
static auto& lib = mps::MetalShaderLibrary::getBundledLibrary();
#else
#include <ATen/native/mps/CdistBackward_metallib.h>
#endif

Tensor _cdist_backward_mps(const Tensor& grad,
                           const Tensor& x1,
                           const Tensor& x2,
                           const double p,
                           const Tensor& cdist) {
  using namespace mps;
  TORCH_CHECK(x1.scalar_type() == x2.scalar_type(), "_cdist_backward: x1 and x2 must have one dtype");
  const auto rows1 = x1.size(-2);
  const auto rows2 = x2.size(-2);
  const auto columns = x1.size(-1);
  auto batch_shape = infer_size(x1.sizes().slice(0, x1.dim() - 2), x2.sizes().slice(0, x2.dim() - 2));
  auto shape1 = batch_shape;
  shape1.insert(shape1.end(), {rows1, columns});
  auto shape2 = batch_shape;
  shape2.insert(shape2.end(), {rows2, columns});
  const auto first = x1.expand(shape1).contiguous();
  const auto second = x2.expand(shape2).contiguous();
  const auto grads = grad.contiguous();
  const auto dist = cdist.contiguous();
  if (rows2 == 0 || first.numel() == 0) {
    return at::zeros_like(x1);
  }
  if (p == 0) {
    return at::zeros_like(first);
  }
  auto grad_x1 = at::empty_like(first);
  CdistBackwardParams params{static_cast<uint32_t>(rows1),
                             static_cast<uint32_t>(rows2),
                             static_cast<uint32_t>(columns),
                             static_cast<float>(p)};
  const auto batches = first.numel() / (rows1 * columns);
  constexpr NSUInteger threads = 128;
  auto stream = getCurrentMPSStream();
  dispatch_sync_with_rethrow(stream->queue(), ^() {
    @autoreleasepool {
      auto encoder = stream->commandEncoder();
      auto pipeline = lib.getPipelineStateForFunc("cdist_backward_" + scalarToMetalTypeString(first));
      getMPSProfiler().beginProfileKernel(pipeline, "cdist_backward", {grads, first, second, dist});
      [encoder setComputePipelineState:pipeline];
      mtl_setArgs(encoder, grad_x1, grads, first, second, dist, params);
      [encoder dispatchThreadgroups:MTLSizeMake(columns, rows1, batches)
              threadsPerThreadgroup:MTLSizeMake(threads, 1, 1)];
      getMPSProfiler().endProfileKernel(pipeline);
    }
  });
  return grad_x1;
}

} // namespace at::native
