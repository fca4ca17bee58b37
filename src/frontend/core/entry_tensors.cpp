#include "frontend/core/entry_tensors.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "frontend/core/cells.h"
#include "frontend/values/strides.h"
#include "speculate/elements_apart.h"
#include "speculate/tensor_access.h"

namespace janus::frontend {

using graph::Dim;
using graph::Type;
using python::Object;
using speculate::TensorFact;
using speculate::ValueFact;

namespace {

graph::Shape dims_of(const std::vector<int64_t>& numbers) {
  return graph::Shape(numbers.begin(), numbers.end());
}

}  // namespace

/// The tensor, if it was reached before. Where the paths were seen to lead to different tensors in
/// some call, they are two in the graph: it fits either way, as long as neither is changed
/// (refuse_changed_aliases).
Value EntryTensors::known_tensor(PyObject* object, const Source* source) {
  const auto& known = entry_tensors[object];
  const auto reached =
      std::ranges::find(known, source, [](const auto& each) { return each->source; });
  if (reached != known.end()) return *reached;
  const ValueFact* seen = facts_.path_fact(source->describe());
  for (const auto& tensor : known) {
    const ValueFact* other = facts_.path_fact(tensor->source->describe());
    if (!frames_.call().keeps_aliases && !tensor->requires_grad && seen != nullptr &&
        other != nullptr && ValueFact::were_different(*seen, *other))
      continue;
    assumptions_.assume_same_object(source, tensor->source);
    return tensor;
  }
  return nullptr;
}

/// What is assumed of the tensor: sizes that vary, or may, get names.
speculate::TensorPattern EntryTensors::pattern_of(const TensorFact& fact, const Source* source,
                                                  bool contiguous) {
  const ValueFact* seen = facts_.path_fact(source->describe());
  const bool general = facts_.generalises("specialise_shapes") && is_handed_over(source);
  // A leaf's gradient lies in memory as the leaf does.
  const bool gets_gradient = fact.is_leaf && fact.requires_grad;
  const bool may_vary =
      contiguous || (!attached_.recursion().wants_exact_strides() && !gets_gradient &&
                     speculate::are_elements_apart(fact.sizes, fact.strides));
  auto varied = [&](size_t i) {
    if (!may_vary || fact.sizes[i] < 2) return false;
    if (seen == nullptr && !fact.is_parameter && attached_.recursion().names_equal_sizes() &&
        table_.has_entry_dimension(fact.sizes[i]))
      return true;
    if (general || seen == nullptr) return general;
    return seen->varies(i);
  };
  speculate::TensorPattern pattern;
  pattern.dtype = fact.dtype;
  for (size_t i = 0; i < fact.sizes.size(); ++i)
    pattern.dims.push_back(varied(i) ? table_.entry_dimension(fact.sizes[i], seen, i)
                                     : Dim(fact.sizes[i]));
  pattern.any_strides = !contiguous && std::ranges::any_of(pattern.dims, [](const Dim& dim) {
    return !dim.is_constant();
  });
  if (!contiguous && !pattern.any_strides) pattern.strides = fact.strides;
  pattern.requires_grad = fact.requires_grad;
  pattern.is_leaf = fact.is_leaf;
  pattern.is_parameter = fact.is_parameter;
  pattern.may_be_view = fact.is_view;
  pattern.has_hooks = fact.has_hooks;
  return pattern;
}

Value EntryTensors::wrap_tensor(PyObject* object, const Source* source) {
  if (Value known = known_tensor(object, source)) return known;
  std::string why_not;
  std::optional<TensorFact> fact = speculate::tensor_access().describe(object, &why_not);
  if (!fact) frames_.refuse(ReasonCode::unsupported_tensor, cat(source->describe(), ": ", why_not));
  if (fact->has_hooks && !fact->is_leaf)
    frames_.refuse(ReasonCode::hook, cat("the tensor ", source->describe()));

  const bool contiguous = are_contiguous(dims_of(fact->sizes), dims_of(fact->strides));
  Assumption assumption;
  assumption.kind = Assumption::Kind::tensor;
  assumption.source = source;
  assumption.tensor = pattern_of(*fact, source, contiguous);
  const graph::Shape& dims = assumption.tensor.dims;

  auto tensor = std::make_shared<Tensor>();
  tensor->source = source;
  tensor->object = Object::borrow(object);
  tensor->requires_grad = fact->requires_grad;
  tensor->is_leaf = fact->is_leaf;
  tensor->is_parameter = fact->is_parameter;
  if (!assumption.tensor.any_strides)
    tensor->strides = contiguous ? contiguous_strides(dims) : dims_of(fact->strides);
  leaves_strides |= assumption.tensor.any_strides;
  tensor->uncertain_alias = fact->is_view;
  tensor->storage = fact->storage;
  const Type type = Type::tensor(fact->dtype, dims);
  assumptions_.assume(std::move(assumption));
  if (is_handed_over(source) && !fact->is_parameter)
    tensor->value = writer_.add_input(type, source);
  else
    tensor->value = read_cell(writer_, *tensor, type);
  if (tensor->requires_grad) autograd_.differentiable.insert(tensor->value);
  if (fact->has_hooks) autograd_.hooked_leaves.insert(tensor.get());
  scopes_.existed_before(*tensor);
  entry_tensors[object].push_back(tensor);
  entry_tensor_order.push_back(tensor);
  return tensor;
}

}  // namespace janus::frontend
