#define TORCH_ASSERT_ONLY_METHOD_OPERATORS
#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

#ifndef AT_PER_OPERATOR_HEADERS
#include <ATen/Functions.h>
#include <ATen/NativeFunctions.h>
#else
#include <ATen/ops/_thnn_fused_lstm_cell_native.h>
#include <ATen/ops/cat.h>
#endif

#include <optional>
#include <tuple>
#include <utility>

namespace at::native {

// Both gate tensors are (batch, 4 * hidden), in the order input, forget, cell, output. Returns the new hidden and cell
// state, (batch, hidden) each, and the activated gates, (batch, 4 * hidden).
std::tuple<Tensor, Tensor, Tensor> _thnn_fused_lstm_cell_cpu(
    const Tensor& input_gates,
    const Tensor& hidden_gates,
    const Tensor& cx,
    const std::optional<Tensor>& input_bias,
    const std::optional<Tensor>& hidden_bias) {
  TORCH_CHECK(
      input_gates.dim() == 2 && input_gates.sizes() == hidden_gates.sizes(),
      "_thnn_fused_lstm_cell: expected two gate tensors of the same two-dimensional shape, got ",
      input_gates.sizes(),
      " and ",
      hidden_gates.sizes());
  TORCH_CHECK(
      cx.dim() == 2 && cx.size(0) == input_gates.size(0) && 4 * cx.size(1) == input_gates.size(1),
      "_thnn_fused_lstm_cell: a cell state of shape ",
      cx.sizes(),
      " does not go with gates of shape ",
      input_gates.sizes());
  auto gates = input_gates + hidden_gates;
  for (const auto* bias : {&input_bias, &hidden_bias}) {
    if (bias->has_value() && (*bias)->defined()) {
      gates.add_(**bias);
    }
  }
  const auto parts = gates.chunk(4, /*dim=*/1);
  const auto in = parts[0].sigmoid();
  const auto forget = parts[1].sigmoid();
  const auto cell = parts[2].tanh();
  const auto out = parts[3].sigmoid();
  auto cy = forget * cx + in * cell;
  auto hy = out * cy.tanh();
  auto workspace = at::cat({in, forget, cell, out}, /*dim=*/1);
  return std::make_tuple(std::move(hy), std::move(cy), std::move(workspace));
}

} // namespace at::native
