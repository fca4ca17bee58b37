// See overlap.h. Views are followed from the nearest tensor that both were taken of, as the part of
// each of its dimensions that they see.
#include "frontend/tensors/overlap.h"

#include <algorithm>
#include <optional>
#include <ranges>
#include <vector>

#include "frontend/core/frames.h"
#include "frontend/tensors/tensor.h"
#include "frontend/values/number_kinds.h"
#include "ops/attributes.h"
#include "ops/list.h"
#include "ops/shape.h"
#include "ops/view_rules.h"

namespace janus::frontend {

using graph::Dim;
using graph::Shape;

namespace {

/// The elements `start`, `start + step`, … of a dimension.
struct Part {
  std::optional<Dim> start;  ///< nothing: only the run knows
  Dim length;
  Dim step = 1;
};

class Region {
 public:
  /// Of a view that was taken of `base`, or of what was taken of that.
  Region(const Tensor& tensor, const Tensor& base) {
    for (const Dim& size : base.value->type.shape) {
      axes_.push_back(parts_.size());
      parts_.push_back({Dim(0), size});
    }
    std::vector<const Tensor*> views;
    for (const Tensor* step = &tensor; step != &base; step = step->base.get())
      views.push_back(step);
    for (; !views.empty() && is_exact_; views.pop_back())
      is_exact_ = narrow_to(*views.back()->view_node, views.back()->view_output);
  }

  /// Whether the two surely have no element in common.
  bool is_apart_from(const Region& other) const {
    for (size_t i = 0; i < parts_.size(); ++i)
      if (are_apart(parts_[i], other.parts_[i])) return true;
    return false;
  }

  /// Whether the elements at equal places are surely the same one, if the two have any in common.
  bool is_alike(const Region& other) const {
    if (!is_exact_ || !other.is_exact_ || axes_ != other.axes_) return false;
    for (size_t i = 0; i < parts_.size(); ++i)
      if (!are_alike(parts_[i], other.parts_[i])) return false;
    return true;
  }

 private:
  static bool ends_before(const Part& a, const Part& b) {
    return ops::at_least_zero(*b.start - (*a.start + (a.length - 1) * a.step) - 1);
  }

  static bool are_apart(const Part& a, const Part& b) {
    if (!a.start || !b.start) return false;
    if (ends_before(a, b) || ends_before(b, a)) return true;
    const Dim distance = *b.start - *a.start;
    return a.step == b.step && a.step.is_constant() && distance.is_constant() &&
           distance.value() % a.step.value() != 0;
  }

  static bool are_alike(const Part& a, const Part& b) {
    if (a.length.is(1) && b.length.is(1)) return true;
    return a.start && b.start && *a.start == *b.start && a.length == b.length && a.step == b.step;
  }

  void take(const graph::Part& view) {
    Part& part = parts_[axes_[static_cast<size_t>(view.dim)]];
    if (view.start && part.start)
      part.start = *part.start + *view.start * part.step;
    else
      part.start = std::nullopt;
    part.length = view.length;
    part.step = part.step * view.step;
    if (view.drops) axes_.erase(axes_.begin() + view.dim);
  }

  /// False: what the view sees can't be said so; that it is within the region so far still holds.
  bool narrow_to(const graph::Node& node, size_t output) {
    if (const auto order = ops::permutation_of(node.op, node.attributes, axes_.size())) {
      const std::vector<size_t> before = axes_;
      for (size_t i = 0; i < axes_.size(); ++i) axes_[i] = before[(*order)[i]];
      return true;
    }
    switch (node.op->sees) {
      case graph::Sees::part:
        take(node.op->part(node, output));
        return true;
      case graph::Sees::all:
      case graph::Sees::in_order:
      case graph::Sees::reshaped:
      case graph::Sees::viewed:
      case graph::Sees::permuted:
      case graph::Sees::expanded:
        return node.outputs[output]->type.shape == node.inputs[0]->type.shape;
      default:
        return false;
    }
  }

  std::vector<Part> parts_;   ///< of each dimension of the base
  std::vector<size_t> axes_;  ///< which of these each dimension of the view is
  bool is_exact_ = true;
};

/// The nearest tensor of which both are views, or that one of them is; null: there is none.
const Tensor* common_base(const Tensor& one, const Tensor& other) {
  for (const Tensor* base = &one; base != nullptr; base = base->base.get())
    for (const Tensor* step = &other; step != nullptr; step = step->base.get())
      if (step == base) return base;
  return nullptr;
}

/// Whether the two were computed in the same way from the same values.
bool are_one_value(const graph::Value* one, const graph::Value* other) {
  if (one == other) return true;
  const graph::Node *a = one->definition, *b = other->definition;
  return a != nullptr && b != nullptr && a->op == b->op && a->op->is(graph::Trait::pure) &&
         a->outputs.size() == 1 && a->blocks.empty() && a->attributes == b->attributes &&
         std::ranges::equal(a->inputs, b->inputs, are_one_value);
}

/// Whether both see the same of their base in the same way, whatever that is.
bool are_one_view(const Tensor& one, const Tensor& other) {
  if (&one == &other) return true;
  if (one.base == nullptr || other.base == nullptr || !are_one_view(*one.base, *other.base))
    return false;
  const graph::Node &a = *one.view_node, &b = *other.view_node;
  return a.op == b.op && a.attributes == b.attributes && one.view_output == other.view_output &&
         std::ranges::equal(a.inputs | std::views::drop(1), b.inputs | std::views::drop(1),
                            are_one_value);
}

/// Whether no element is read of memory where another one is written.
bool fit_together(const Tensor& written, const Tensor& read, bool same_elements) {
  if (memory_of(&written) != memory_of(&read)) return true;
  if (same_elements && are_one_view(written, read)) return true;
  const Tensor* base = common_base(written, read);
  if (base == nullptr) return false;
  const Region target(written, *base), source(read, *base);
  return target.is_apart_from(source) || (same_elements && target.is_alike(source));
}

/// Whether one puts where the other takes; of a number it may be the tensor.
bool are_one_index(const graph::Value* taken, const graph::Value* put) {
  const graph::Node* made = put->definition;
  const bool is_number = made != nullptr && made->op == &op::full && put->type.rank() == 0;
  return are_one_value(taken, put) || (is_number && are_one_value(taken, made->inputs[0]));
}

/// Whether `x[i, j] = x[i, j]` is what it does, which is how `x[i, j] += 1` ends.
bool puts_back(const graph::Node& put, const Tensor& written, const Tensor& read) {
  if (put.op != &op::index_put || ops::flag_attribute(put.attributes, "accumulate")) return false;
  std::vector<const graph::Value*> indices;
  for (const Tensor* step = &read; step != &written; step = step->base.get()) {
    const graph::Node* view = step->view_node;
    if (view == nullptr || view->inputs.size() != 2 ||
        (view->op != &op::index && view->op != &op::row))
      return false;
    indices.push_back(view->inputs[1]);
  }
  return std::ranges::equal(
      indices | std::views::reverse,
      put.inputs | std::views::drop(1) | std::views::take(put.inputs.size() - 2), are_one_index);
}

}  // namespace

bool are_apart(const Tensor& one, const Tensor& other) {
  const Tensor* base = common_base(one, other);
  return base != nullptr && Region(one, *base).is_apart_from(Region(other, *base));
}

void refuse_overlap(const Frames& frames, const Tensor& written, const graph::Node& by,
                    std::span<const std::shared_ptr<Tensor>> operands) {
  const bool same_elements = by.op->is(graph::Trait::elementwise) || by.op == &op::copy;
  for (const std::shared_ptr<Tensor>& operand : operands)
    if (operand != nullptr && !fit_together(written, *operand, same_elements) &&
        !puts_back(by, written, *operand))
      frames.refuse(ReasonCode::unsupported_tensor,
                    "an in-place operation that reads the memory that it writes");
}

void refuse_overlap(const Frames& frames, const Tensor& written, const graph::Node& by,
                    const CallArguments& operands, size_t first) {
  std::vector<std::shared_ptr<Tensor>> tensors;
  for (const Value& argument : operands.positional | std::views::drop(first))
    tensors.push_back(shared_as<Tensor>(argument));
  for (const auto& [keyword, argument] : operands.keywords)
    tensors.push_back(shared_as<Tensor>(argument));
  refuse_overlap(frames, written, by, tensors);
}

}  // namespace janus::frontend
