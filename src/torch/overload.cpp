// Overloads by name, and their forms that write into given tensors.
#include "torch/overload.h"

#include <algorithm>
#include <vector>

#include "graph/op.h"
#include "ops/list.h"

namespace janus::torch {

namespace {

c10::OperatorName split_name(std::string_view name) {
  std::string full(name);
  if (full.find("::") == std::string::npos) full = "aten::" + full;
  const size_t dot = full.find('.');
  if (dot == std::string::npos) return {full, ""};
  return {full.substr(0, dot), full.substr(dot + 1)};
}

/// Whether `out` takes what `plain` takes and, after that, one tensor for each result to write to.
bool is_out_form(const c10::FunctionSchema& out, const c10::FunctionSchema& plain) {
  const auto& wanted = plain.arguments();
  const auto& given = out.arguments();
  if (given.size() != wanted.size() + plain.returns().size()) return false;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (given[i].name() != wanted[i].name() || *given[i].type() != *wanted[i].type()) return false;
  }
  return std::all_of(given.begin() + static_cast<ptrdiff_t>(wanted.size()), given.end(),
                     [](const c10::Argument& argument) {
                       return argument.is_out() &&
                              argument.type()->kind() == c10::TypeKind::TensorType;
                     });
}

}  // namespace

std::string overload_name(const graph::Node& node) {
  if (node.op == &op::opaque || node.op == &op::opaque_backward) {
    return node.attributes.get<std::string>("operator");
  }
  TORCHJANUS_CHECK(!node.op->aten.empty(), node.op->name, ": nothing computes this operator");
  return std::string(node.op->aten);
}

c10::OperatorHandle find_overload(std::string_view name) {
  const auto handle = c10::Dispatcher::singleton().findSchema(split_name(name));
  TORCHJANUS_CHECK(handle, "find_overload: torch has no operator ", name);
  return *handle;
}

std::optional<c10::OperatorHandle> find_out_overload(const c10::OperatorHandle& overload) {
  const c10::FunctionSchema& plain = overload.schema();
  if (plain.is_mutable() || plain.returns().empty()) return std::nullopt;
  const std::string& base = plain.overload_name();
  std::vector<std::string> names{base.empty() ? "out" : base + "_out", "out"};
  if (base == "Tensor" || base == "Scalar") names.push_back(base + "_out");
  names.push_back(base.empty() ? "output" : base + "_output");
  names.push_back(base == "dim" ? "dim_max" : "grad_input");
  if (base == "dim") names.push_back("dim_min");
  for (const std::string& name : names) {
    const auto handle = c10::Dispatcher::singleton().findSchema({plain.name(), name});
    if (handle && is_out_form(handle->schema(), plain) &&
        handle->hasKernelForDispatchKey(c10::DispatchKey::CPU)) {
      return *handle;
    }
  }
  return std::nullopt;
}

}  // namespace janus::torch
