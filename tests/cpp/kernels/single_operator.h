// A kernel for one operator, on operands of one dtype.
#pragma once

#include "graph/builder.h"
#include "graph/graph.h"
#include "ops/list.h"

namespace janus::kernels {

using graph::DType;

inline constexpr int64_t kCount = 37;
inline constexpr DType kDTypes[] = {DType::f32, DType::f64, DType::bf16, DType::f16, DType::i64,
                                    DType::i32, DType::i16, DType::i8,   DType::u8,  DType::b1};

/// One `fused` node that holds one operator, in a graph of its own.
struct Single {
  graph::Graph graph{"single"};
  graph::Node* fused = nullptr;
  graph::Node* inner = nullptr;  ///< null: the operator does not take these operands
};

/// Operands: tensors of `dtype`, numbers, None where they may be missing.
inline void fill_block(Single& single, const graph::OpDef& op, DType dtype) {
  graph::Builder outer(single.graph);
  single.fused = outer.append_unchecked(op::fused, {}, {}, {});
  single.fused->blocks.push_back(std::make_unique<graph::Block>());
  graph::Block& block = *single.fused->blocks.front();
  block.parent = single.fused;
  graph::Builder builder(single.graph, block);
  std::vector<graph::Value*> operands;
  for (const graph::Parameter& parameter : op.signature().parameters) {
    if (!parameter.is_operand()) continue;
    if (parameter.kind == graph::Parameter::Kind::tensor_list) return;
    if (parameter.optional || parameter.default_value) break;
    const bool is_tensor = parameter.kind == graph::Parameter::Kind::tensor;
    const graph::Type type = is_tensor ? graph::Type::tensor(dtype, {kCount}) : graph::Type::f64();
    single.fused->inputs.push_back(outer.input(type, ""));
    operands.push_back(single.graph.new_parameter(block, type));
  }
  try {
    single.inner = builder.append(op, operands);
  } catch (const graph::TypeError&) {
    return;
  } catch (const InternalError&) {
    return;  // an attribute without a default
  }
  block.results = {single.inner->output()};
  single.fused->outputs = {single.graph.new_value(single.inner->output()->type)};
}

}  // namespace janus::kernels
