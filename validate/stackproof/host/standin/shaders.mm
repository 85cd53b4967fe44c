// at::native::mps: shader libraries whose kernels are asked for by name, wherever their source is.
#include <ATen/native/mps/OperationUtils.h>
#include <ATen/ops/empty.h>

#include "objects.h"

namespace at::native::mps {

std::string scalarToMetalTypeString(const c10::ScalarType& type) {
  switch (type) {
    case ScalarType::Float:
      return "float";
    case ScalarType::Half:
      return "half";
    case ScalarType::BFloat16:
      return "bfloat";
    case ScalarType::Int:
      return "int";
    case ScalarType::Long:
      return "long";
    case ScalarType::Short:
      return "short";
    case ScalarType::Char:
      return "char";
    case ScalarType::Byte:
      return "uchar";
    case ScalarType::Bool:
      return "bool";
    case ScalarType::ComplexHalf:
      return "half2";
    case ScalarType::ComplexFloat:
      return "float2";
    default:
      TORCH_CHECK_TYPE(false, "Metal has no type for ", type);
  }
}

Tensor wrapped_scalar_tensor_mps(const Scalar& scalar, const Device device) {
  const auto type = scalar.type() == kDouble ? kFloat : scalar.type();
  Tensor made = at::empty({}, at::dtype(type).device(device)).fill_(scalar);
  made.unsafeGetTensorImpl()->set_wrapped_number(true);
  return made;
}

MetalKernelFunction::~MetalKernelFunction() = default;
MetalShaderLibrary::~MetalShaderLibrary() = default;
MTLLibrary_t MetalShaderLibrary::getLibrary() {
  return nil;
}
MTLLibrary_t MetalShaderLibrary::getLibrary(const std::initializer_list<std::string>& parameters) {
  TORCH_CHECK(false, "stand-in device: shader sources with parameters are not supported");
}
static bool is_kernel(const std::string& name) {
  return standin::callbacks().find && standin::callbacks().find(name.c_str());
}
#ifdef STANDIN_HAS_FUNCTION
bool MetalShaderLibrary::hasFunction(const std::string& name) {
  return is_kernel(name);
}
#endif
std::pair<MTLComputePipelineState_t, MTLFunction_t> MetalShaderLibrary::getLibraryPipelineState(
    MTLLibrary_t library,
    const std::string& name) {
  const auto known = cplMap.find(name);
  if (known != cplMap.end()) {
    return known->second;
  }
  if (!is_kernel(name)) {
    standin::note("no-such-kernel", "no .metal source of the tree has a kernel called " + name);
    TORCH_CHECK(false, "stand-in device: no kernel is called ", name);
  }
  return cplMap[name] = {[StandinPipelineState withKernel:name], nil};
}
MetalShaderLibrary& MetalShaderLibrary::getBundledLibrary() {
  static auto* const bundled = new MetalShaderLibrary("");
  return *bundled;
}

} // namespace at::native::mps
