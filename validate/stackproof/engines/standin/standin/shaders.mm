// at::native::mps: shader libraries whose kernels are asked for by name, wherever their source is.
#include <ATen/native/mps/OperationUtils.h>
#include <ATen/ops/empty.h>

#include <fmt/args.h>
#include <fmt/format.h>

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
// A source that a host file brings as text: Python compiles it. The library is its number; 0 is the bundled one.
MTLLibrary_t MetalShaderLibrary::compileLibrary(const std::string& source) {
  char message[2048] = "nothing is connected";
  const auto compile = standin::callbacks().compile;
  const long number = compile ? compile(source.c_str(), message, sizeof message) : 0;
  TORCH_CHECK(number > 0, "stand-in device: a shader source does not compile: ", message);
  return (MTLLibrary_t)number;
}
MTLLibrary_t MetalShaderLibrary::getLibrary() {
  if (!library && !shaderSource.empty()) {
    library = compileLibrary(shaderSource);
  }
  return library;
}
MTLLibrary_t MetalShaderLibrary::getLibrary(const std::initializer_list<std::string>& parameters) {
  std::string key;
  fmt::dynamic_format_arg_store<fmt::format_context> store;
  for (const auto& one : parameters) {
    key += ":" + one;
    store.push_back(one);
  }
  auto& found = libMap[key];
  if (!found) {
    found = compileLibrary(fmt::vformat(shaderSource, store));
  }
  return found;
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
    const std::string& plain) {
  const std::string name = library ? fmt::format("{}:{}", (long)library, plain) : plain;
  const auto known = cplMap.find(name);
  if (known != cplMap.end()) {
    return known->second;
  }
  if (!is_kernel(name)) {
    standin::note("no-such-kernel", "no .metal source of the tree has a kernel called " + name);
    TORCH_CHECK(false, "stand-in device: no kernel is called ", name);
  }
  return cplMap[name] = {[StandinPipelineState withKernel:name], [StandinFunction new]};
}
MetalShaderLibrary& MetalShaderLibrary::getBundledLibrary() {
  static auto* const bundled = new MetalShaderLibrary("");
  return *bundled;
}

} // namespace at::native::mps
