// Only the fragment lands; the rest is there so that the file reads alone.
namespace at::native {
namespace {
// fragment: renorm_out_mps
void renorm_out_mps(const Tensor& self, const Scalar& p, int64_t dim, const Scalar& maxnorm, const Tensor& out) {
  DimVector others;
  for (int64_t axis = 0; axis < self.dim(); ++axis) {
    if (axis != c10::maybe_wrap_dim(dim, self.dim())) {
      others.push_back(axis);
    }
  }
  const Tensor norms = at::linalg_vector_norm(self, p.toDouble(), others, /*keepdim=*/true);
  if (norms.numel() == 0) {
    return;
  }
  const Tensor factors = at::empty(norms.sizes(), norms.options());
  const auto kernel = "renorm_" + scalarToMetalTypeString(norms);
  auto pipeline = lib.getPipelineStateForFunc(kernel);
  auto stream = getCurrentMPSStream();
  dispatch_sync_with_rethrow(stream->queue(), ^() {
    @autoreleasepool {
      auto encoder = stream->commandEncoder();
      getMPSProfiler().beginProfileKernel(pipeline, kernel, {norms});
      [encoder setComputePipelineState:pipeline];
      mtl_setArgs(encoder, norms, factors, maxnorm.to<float>());
      mtl_dispatch1DJob(encoder, pipeline, norms.numel());
      getMPSProfiler().endProfileKernel(pipeline);
    }
  });
  at::mul_outf(self, factors, const_cast<Tensor&>(out));
}
// end fragment
} // namespace
} // namespace at::native
