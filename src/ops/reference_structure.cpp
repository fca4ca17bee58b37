// Reference implementations of ops/structure.cpp: operators that run blocks.
#include "base/policy.h"
#include "graph/element_code.h"
#include "ops/list.h"
#include "ops/reference_functions.h"
#include "ops/rows.h"

namespace janus::ops {

using namespace graph;

namespace {

std::vector<Datum> operands(const ReferenceCall& call) {
  return {call.inputs.begin(), call.inputs.end()};
}

std::vector<Datum> fused(const ReferenceCall& call) {
  return call.run.run(*call.node.blocks[0], operands(call));
}

std::vector<Datum> branch(const ReferenceCall& call) {
  return call.run.run(*call.node.blocks[std::get<bool>(call.inputs[0]) ? 0 : 1], {});
}

std::vector<Datum> loop(const ReferenceCall& call) {
  std::vector<Datum> carried = operands(call);
  for (int64_t iteration = 0;; ++iteration) {
    TORCHJANUS_CHECK(iteration < policy::kLongestReferenceLoop, "interpreter: a loop does not end");
    if (!std::get<bool>(call.run.run(*call.node.blocks[0], carried)[0])) return carried;
    carried = call.run.run(*call.node.blocks[1], std::move(carried));
  }
}

/// The operand as a single row of this type.
DenseTensor row_of(const ReferenceCall& call, const Type& type, const Datum& operand) {
  DenseTensor row(type.dtype, call.run.sizes_of(type));
  if (const auto* tensor = std::get_if<DenseTensor>(&operand)) {
    row.elements = tensor->elements;
  } else {
    row.elements[0] = typed_number(operand).number;
  }
  return row;
}

std::vector<Datum> single_row(const ReferenceCall& call) {
  const Block& block = *call.node.blocks[0];
  const auto sums = static_cast<size_t>(call.node.attributes.get<int64_t>("sums"));
  call.run.set_symbol(call.node.attributes.get<std::string>("symbol"), 1);
  std::vector<Datum> arguments = operands(call);
  for (size_t i = 0; i + sums < arguments.size(); ++i)
    arguments[i] = row_of(call, block.parameters[i]->type, arguments[i]);
  std::vector<Datum> results = call.run.run(block, std::move(arguments));
  if (sums > 0) return results;
  for (Datum& result : results) {
    auto& tensor = std::get<DenseTensor>(result);
    tensor.sizes.erase(tensor.sizes.begin());
  }
  return results;
}

}  // namespace

void add_structure(Reference::Functions& functions) {
  functions[&op::fused] = fused;
  functions[&op::if_] = branch;
  functions[&op::while_] = loop;
  functions[&op::rows] = single_row;
}

}  // namespace janus::ops
