// tensor[key] and tensor[key] = value: integers, slices, None and Ellipsis become views one after
// the other, tensors become gathers.
#include <algorithm>

#include "frontend/core/class_of.h"
#include "frontend/core/exceptions.h"
#include "frontend/core/known_callables.h"
#include "frontend/core/operations.h"
#include "frontend/tensors/arrays.h"
#include "frontend/tensors/callables.h"
#include "frontend/tensors/masks.h"
#include "frontend/tensors/tensor.h"
#include "frontend/values/make.h"
#include "frontend/values/number_kinds.h"
#include "frontend/values/strides.h"
#include "frontend/values/symbolic_list.h"
#include "graph/constant.h"
#include "ops/attributes.h"
#include "ops/list.h"
#include "python/integer.h"

namespace janus::frontend {

using python::Object;

namespace {

bool is_int(const Value& value) {
  PyObject* object = known_object(value);
  if (object != nullptr) return PyLong_CheckExact(object);
  const auto* number = as<Number>(value);
  return number != nullptr && number->type == graph::Type::Kind::i64;
}

std::vector<Value> index_parts(Interpreter& interpreter, const Value& key) {
  const auto* known = as<Known>(key);
  if (known != nullptr && PyTuple_CheckExact(known->object.get()))
    return elements_of(interpreter, key);
  if (const auto* sequence = as<Sequence>(key);
      sequence != nullptr && !sequence->is_list && is_list_or_tuple(key))
    return sequence->elements;
  return {key};
}

/// Whether it is a list, or like one, of fewer elements than torch takes for data without a look,
/// and some of them are no numbers.
bool may_stand_for_tuple(const Value& shadow) {
  constexpr size_t kLong = 32;
  const auto* list = as<Sequence>(shadow);
  if (list == nullptr) return false;
  if (const Rolled* grown = rolled(shadow)) return grown->form.kind != ElementForm::Kind::number;
  return list->elements.size() < kLong && !std::ranges::all_of(list->elements.known(), is_number);
}

/// Python's slice objects (constants) and slices made in the run alike.
std::shared_ptr<SliceValue> as_slice(ValueMaker& maker, const Value& value) {
  if (auto slice = shared_as<SliceValue>(value)) return slice;
  PyObject* object = known_object(value);
  if (object == nullptr || !PySlice_Check(object)) return nullptr;
  auto* raw = reinterpret_cast<PySliceObject*>(object);
  auto slice = std::make_shared<SliceValue>();
  slice->start = maker.constant_borrowed(raw->start);
  slice->stop = maker.constant_borrowed(raw->stop);
  slice->step = maker.constant_borrowed(raw->step);
  return slice;
}

class Indexing {
 public:
  /// `for_write`: the key is that of an assignment.
  Indexing(Interpreter& interpreter, std::shared_ptr<Tensor> tensor, bool for_write)
      : interpreter_(interpreter),
        for_write_(for_write),
        original_(tensor),
        current_(std::move(tensor)) {}

  /// Applies the views of the key. `gathers()` says whether tensors are among its parts.
  void run(const Value& key) {
    std::vector<Value> parts = index_parts(interpreter_, key);
    const bool is_alone = parts.size() == 1 && parts[0] == key;
    // Versions of torch differ in whether they read it as a tuple, and in whether they warn.
    if (is_alone && may_stand_for_tuple(opened(interpreter_, key)))
      interpreter_.refuse(ReasonCode::expression, "an index that is a list of more than numbers");
    for (Value& part : parts)
      if (const auto indices = indices_of_array(interpreter_, part, is_alone)) part = indices;
    expand_ellipsis(parts);
    for (const Value& part : parts) apply(part);
    if (current_ != original_ || gathers()) return;
    alias();
    // Eager makes a slice of x[:], and of x[...], x[:, :] an alias.
    if (as_slice(interpreter_, key) == nullptr) current_->grad_fn_name = "AliasBackward0";
  }

  bool gathers() const { return !indices_.empty(); }
  std::shared_ptr<Tensor> result() {
    if (!gathers()) return current_;
    std::vector<Value> list = padded_indices();
    return tensor_by(interpreter_, "Tensor.index", {current_, make_list(std::move(list))});
  }
  const std::shared_ptr<Tensor>& viewed() const { return current_; }
  std::vector<Value> padded_indices() const {
    std::vector<Value> list;
    for (const auto& [dim, index] : indices_) {
      while (list.size() < static_cast<size_t>(dim)) list.push_back(interpreter_.none());
      list.push_back(index);
    }
    return list;
  }

 private:
  /// How many dimensions of the tensor a part consumes.
  size_t consumed(const Value& part) const {
    PyObject* object = known_object(part);
    if (object == Py_None || object == Py_Ellipsis) return 0;
    if (const auto* mask = as<Tensor>(part);
        mask != nullptr && mask->value->type.dtype == graph::DType::b1)
      return static_cast<size_t>(mask->value->type.rank());
    return 1;
  }

  void expand_ellipsis(std::vector<Value>& parts) {
    auto rank = static_cast<size_t>(current_->value->type.rank());
    size_t used = 0, dots = parts.size();
    for (size_t i = 0; i < parts.size(); ++i) {
      used += consumed(parts[i]);
      if (known_object(parts[i]) == Py_Ellipsis) {
        if (dots < parts.size())
          interpreter_.refuse(ReasonCode::would_raise, "IndexError: more than one ellipsis");
        dots = i;
      }
    }
    if (used > rank)
      interpreter_.refuse(ReasonCode::would_raise, "IndexError: too many indices for tensor");
    if (dots == parts.size()) return;
    auto whole = std::make_shared<SliceValue>();
    whole->start = whole->stop = whole->step = interpreter_.none();
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(dots));
    parts.insert(parts.begin() + static_cast<std::ptrdiff_t>(dots), rank - used, whole);
  }

  void apply(const Value& part) {
    PyObject* object = known_object(part);
    if (object == Py_None) {
      current_ =
          tensor_by(interpreter_, "Tensor.unsqueeze", {current_, interpreter_.integer(dim_)});
      ++dim_;
      return;
    }
    if (auto slice = as_slice(interpreter_, part)) return apply_slice(*slice);
    if (is_int(part)) {
      if (const auto* number = as<Number>(part); number != nullptr && !number->dim) {
        if (for_write_) return apply_tensor(as_tensor(part));
        const bool is_row =
            dim_ == 0 && (is_contiguous(*current_) || current_->value->type.rank() == 1);
        return is_row ? select_row(part) : select_at(as_tensor(part), part);
      }
      expect_inside(object);
      current_ =
          tensor_by(interpreter_, "Tensor.select", {current_, interpreter_.integer(dim_), part});
      return;
    }
    if (auto tensor = shared_as<Tensor>(part)) return apply_tensor(tensor);
    if ((as<Sequence>(part) != nullptr && !is_dict_view(part)) ||
        (object != nullptr && PyList_Check(object)))
      if (auto index = as_tensor(part)) return apply_tensor(index);
    interpreter_.refuse(ReasonCode::expression, "an index");
  }

  /// Of a known position and a known size.
  void expect_inside(PyObject* position) const {
    const graph::Dim& size = current_->value->type.shape.at(static_cast<size_t>(dim_));
    if (position == nullptr || !size.is_constant()) return;
    const long long at = PyLong_AsLongLong(position);
    PyErr_Clear();
    if (at < -size.value() || at >= size.value())
      raise(interpreter_, PyExc_IndexError, "IndexError: index out of range of a tensor");
  }

  std::shared_ptr<Tensor> as_tensor(const Value& data) {
    static const Handler make = handler_named("torch.tensor");
    CallArguments arguments;
    arguments.positional = {data};
    return shared_as<Tensor>(make(interpreter_, arguments));
  }

  void apply_slice(const SliceValue& slice) {
    bool whole = known_object(slice.start) == Py_None && known_object(slice.stop) == Py_None &&
                 known_object(slice.step) == Py_None;
    if (!whole) {
      for (const Value& bound : {slice.start, slice.stop, slice.step})
        if (known_object(bound) != Py_None && !is_int(bound))
          interpreter_.refuse(ReasonCode::dynamic_value, "a bound of a slice");
      current_ = slice_view(slice);
    }
    ++dim_;
  }

  std::shared_ptr<Tensor> slice_view(const SliceValue& slice) {
    if (auto view = inner_range(slice)) return view;
    if (auto part = moving_part(slice)) return part;
    Value step = known_object(slice.step) == Py_None ? interpreter_.integer(1) : slice.step;
    if (auto part = varying_part(slice, step)) return part;
    graph::Attributes attributes;
    attributes.set("dim", dim_);
    if (!set_bound(attributes, "start", slice.start) || !set_bound(attributes, "end", slice.stop) ||
        !set_bound(attributes, "step", step))
      interpreter_.refuse(ReasonCode::dynamic_value, "a bound of a slice");
    return view_of(interpreter_, current_, op::slice, std::move(attributes), slicer(slice));
  }

  /// x[start:stop] where the bounds vary from call to call. Which side of which bound they lie on
  /// decides what the slice is, so that is guarded; null if none varies or a bound is out of range.
  /// A size may only lie beyond the end of what has always the same size: positions[:, :length].
  std::shared_ptr<Tensor> varying_part(const SliceValue& slice, const Value& step) {
    using graph::Dim;
    PyObject* by = known_object(step);
    if (by == nullptr || PyLong_AsLongLong(by) != 1) return nullptr;
    const Dim size = current_->value->type.shape.at(static_cast<size_t>(dim_));
    std::optional<Dim> start = bound(slice.start, 0), stop = bound(slice.stop, size);
    if (!start || !stop) return nullptr;
    const bool may_end_behind = size.is_constant() && !stop->is_constant();
    if (!may_be_anything(*start) && !may_be_anything(*stop) && !may_end_behind) return nullptr;
    const Dim length = *stop - *start;
    // No element is special to operators, so a length that varies has to be a size.
    if (!length.is_constant() && length.lower_bound().value_or(0) < 1) return nullptr;
    if (!holds_now(*start) || !holds_now(length) || !holds_now(size - *stop)) return nullptr;
    for (const Dim& rest : {*start, size - *stop}) guard_not_negative(rest);
    return part_of(*start, length, slice);
  }

  std::shared_ptr<Tensor> part_of(const graph::Dim& start, const graph::Dim& length,
                                  const SliceValue& slice) {
    graph::Attributes attributes = {
        {"dim", dim_}, {"start", ops::to_attribute(start)}, {"length", ops::to_attribute(length)}};
    return view_of(interpreter_, current_, op::narrow, std::move(attributes), slicer(slice));
  }

  std::optional<graph::Dim> bound(const Value& value, const graph::Dim& missing) const {
    PyObject* object = known_object(value);
    if (object == Py_None) return missing;
    if (object == nullptr) return as<Number>(value)->dim;
    const std::optional<int64_t> number = python::int64_of(object);
    return number >= 0 ? std::optional<graph::Dim>(number) : std::nullopt;
  }

  static bool may_be_anything(const graph::Dim& dim) {
    return !dim.is_constant() && dim.lower_bound().value_or(-1) < 0;
  }

  bool holds_now(const graph::Dim& not_negative) const {
    return interpreter_.evaluate(not_negative).value_or(-1) >= 0;
  }

  void guard_not_negative(const graph::Dim& dim) {
    if (dim.lower_bound().value_or(-1) >= 0) return;
    graph::Builder& builder = interpreter_.builder();
    graph::Value* test =
        op::scalar_ge(builder, {interpreter_.dimension_value(dim), builder.constant(int64_t{0})});
    interpreter_.follow(test, Object::borrow(Py_True), /*fact_number=*/-1);
  }

  /// Where the sign of a bound is not known (x[start : start + batch] with a start that varies):
  /// on which side of the tensor's beginning and end it lies is guarded. Null elsewhere.
  std::shared_ptr<Tensor> inner_range(const SliceValue& slice) {
    const Value& step = slice.step;
    if (known_object(step) != Py_None && !is_one(step)) return nullptr;
    if (!is_varying(slice.start) && !is_varying(slice.stop)) return nullptr;
    const graph::Dim& size = current_->value->type.shape[static_cast<size_t>(dim_)];
    const Value zero = interpreter_.integer(0), whole = interpreter_.dimension(size);
    const Value start = known_object(slice.start) == Py_None ? zero : within(slice.start, whole);
    const Value stop = known_object(slice.stop) == Py_None ? whole : within(slice.stop, whole);
    const auto first = dimension_of(start), last = dimension_of(stop);
    if (!first || !last) return nullptr;
    const bool is_empty = !in_order(start, stop);
    return part_of(*first, is_empty ? graph::Dim(0) : *last - *first, slice);
  }

  /// The bound as a position within the tensor: a negative one counts from the end.
  Value within(const Value& bound, const Value& whole) {
    const Value zero = interpreter_.integer(0);
    if (in_order(zero, bound)) return in_order(bound, whole) ? bound : whole;
    const Value position = binary(interpreter_, syntax::Operator::Add, whole, bound);
    return in_order(zero, position) ? position : zero;
  }

  /// x[t : t + length] where only the run knows t (a loop in the graph counts it): guarded to lie
  /// within the tensor. Null where it is something else.
  std::shared_ptr<Tensor> moving_part(const SliceValue& slice) {
    if (known_object(slice.step) != Py_None && !is_one(slice.step)) return nullptr;
    const auto *start = as<Number>(slice.start), *stop = as<Number>(slice.stop);
    if (start == nullptr || stop == nullptr || (start->dim && stop->dim)) return nullptr;
    const std::optional<int64_t> length =
        distance(interpreter_.graph_value(slice.start), interpreter_.graph_value(slice.stop));
    if (!length || *length < 1 || !is_contiguous(*current_)) return nullptr;
    const graph::Dim& size = current_->value->type.shape[static_cast<size_t>(dim_)];
    if (!in_order(interpreter_.integer(0), slice.start) ||
        !in_order(slice.stop, interpreter_.dimension(size)))
      return nullptr;
    const graph::Shape strides = contiguous_strides(current_->value->type.shape);
    if (*length == 1) {
      dim_ == 0 ? select_row(slice.start) : select_at(as_tensor(slice.start), slice.start);
      current_ =
          tensor_by(interpreter_, "Tensor.unsqueeze", {current_, interpreter_.integer(dim_)});
    } else {
      const auto first = tensor_by(interpreter_, "arange", {interpreter_.integer(*length)});
      take_at(tensor_by(interpreter_, "add", {first, slice.start}), slicer(slice));
    }
    current_->producer = op::slice;
    current_->strides = strides;
    return current_;
  }

  /// How much more `to` is than `from`, if that is always the same.
  static std::optional<int64_t> distance(const graph::Value* from, const graph::Value* to) {
    const auto [first, start] = without_constant(from);
    const auto [second, stop] = without_constant(to);
    return first == second ? std::optional(stop - start) : std::nullopt;
  }

  /// The number as another one and a constant that is added to it.
  static std::pair<const graph::Value*, int64_t> without_constant(const graph::Value* number) {
    int64_t sum = 0;
    while (number->definition != nullptr && number->definition->op == &op::scalar_add) {
      const auto& terms = number->definition->inputs;
      const std::optional<int64_t> left = graph::constant_integer(terms[0]),
                                   right = graph::constant_integer(terms[1]);
      if (!left == !right) break;
      sum += left ? *left : *right;
      number = left ? terms[1] : terms[0];
    }
    return {number, sum};
  }

  bool in_order(const Value& left, const Value& right) {
    return holds(interpreter_, left, syntax::CompareOperator::LtE, right);
  }

  static bool is_one(const Value& value) {
    PyObject* object = known_object(value);
    return object != nullptr && PyLong_CheckExact(object) && PyLong_AsLongLong(object) == 1;
  }

  static bool is_varying(const Value& value) {
    const auto* number = as<Number>(value);
    return number != nullptr && number->dim && number->dim->lower_bound().value_or(-1) < 0;
  }

  static std::optional<graph::Dim> dimension_of(const Value& value) {
    if (const auto* number = as<Number>(value)) return number->dim;
    PyObject* object = known_object(value);
    return object == nullptr ? std::nullopt : std::optional<graph::Dim>(python::int64_of(object));
  }

  bool set_bound(graph::Attributes& attributes, const char* name, const Value& value) {
    PyObject* object = known_object(value);
    if (object == Py_None) {
      attributes.set(name, graph::None{});
      return true;
    }
    if (object != nullptr) {
      int64_t number = PyLong_AsLongLong(object);
      if (number == -1 && PyErr_Occurred() != nullptr) interpreter_.refuse_raised();
      attributes.set(name, number);
      return true;
    }
    const auto* number = as<Number>(value);
    if (number == nullptr || !number->dim) return false;
    attributes.set(name, *number->dim);
    return true;
  }

  /// The key that takes this slice in this dimension, for making the view again in Python.
  CallArguments slicer(const SliceValue& slice) {
    auto copy = std::make_shared<SliceValue>();
    copy->start = slice.start;
    copy->stop = slice.stop;
    copy->step = slice.step;
    CallArguments arguments;
    arguments.positional = {current_, make_tuple(key_at(copy))};
    return arguments;
  }

  /// A 0-d tensor of integers is a number to eager: the result shares memory with the tensor.
  void select_by(const std::shared_ptr<Tensor>& index) {
    select_at(index, item(interpreter_, *index));
  }

  /// The part at a number that the run has, of the first dimension.
  void select_row(const Value& part) {
    CallArguments place;
    place.positional = {current_, make_tuple(key_at(part))};
    const graph::Node* node = interpreter_.builder().append(
        op::row, {read(interpreter_, *current_), interpreter_.graph_value(part)});
    current_ = view_by(interpreter_, current_, node, place);
    current_->producer = op::select;
    current_->strides = contiguous_strides(current_->value->type.shape);
  }

  void select_at(const std::shared_ptr<Tensor>& index, const Value& number) {
    // The copy that is made here would have other strides, if it has any.
    if (!is_contiguous(*current_) && current_->value->type.rank() > 1) {
      current_ =
          tensor_by(interpreter_, "Tensor.select", {current_, interpreter_.integer(dim_), number});
      return;
    }
    CallArguments place;
    place.positional = {current_, make_tuple(key_at(number))};
    take_at(index, std::move(place));
    current_->producer = op::select;
    if (dim_ == 0) current_->strides = contiguous_strides(current_->value->type.shape);
  }

  /// What stands at the positions along the dimension at hand, which to eager is a view; `place`:
  /// how Python takes it.
  void take_at(const std::shared_ptr<Tensor>& positions, CallArguments place) {
    std::vector<graph::Value*> inputs(static_cast<size_t>(dim_) + 1, interpreter_.builder().none());
    inputs[0] = read(interpreter_, *current_);
    inputs.push_back(cast(interpreter_, read(interpreter_, *positions), graph::DType::i64));
    const graph::Node* node = interpreter_.builder().append(op::index, inputs);
    current_ = view_by(interpreter_, current_, node, place);
  }

  /// (:, :, part) for the dimension at hand.
  std::vector<Value> key_at(Value part) const {
    std::vector<Value> key;
    for (int64_t i = 0; i < dim_; ++i) {
      auto whole = std::make_shared<SliceValue>();
      whole->start = whole->stop = whole->step = interpreter_.none();
      key.push_back(whole);
    }
    key.push_back(std::move(part));
    return key;
  }

  void apply_tensor(const std::shared_ptr<Tensor>& index) {
    const graph::Type& type = index->value->type;
    const bool is_number = type.rank() == 0 && graph::is_integral(type.dtype) &&
                           type.dtype != graph::DType::u8 && type.dtype != graph::DType::b1;
    if (is_number && !for_write_) return select_by(index);
    if (type.dtype == graph::DType::u8 || (type.rank() == 0 && type.dtype == graph::DType::b1))
      interpreter_.refuse(ReasonCode::expression, "an index that is a mask of bytes or one flag");
    if (!gathers() || indices_.back().first + 1 == dim_) {
      if (type.dtype == graph::DType::b1 && !for_write_) return apply_mask(index);
      if (type.dtype == graph::DType::b1 || graph::is_integral(type.dtype)) {
        indices_.emplace_back(dim_, index);
        dim_ += static_cast<int64_t>(consumed(index));
        return;
      }
    }
    interpreter_.refuse(ReasonCode::expression, "an index of several tensors apart");
  }

  /// A mask is read as the positions that it chooses along the dimensions that it covers.
  void apply_mask(std::shared_ptr<Tensor> mask) {
    const graph::Shape& covered = mask->value->type.shape;
    const graph::Shape& shape = current_->value->type.shape;
    const int64_t last = dim_ + static_cast<int64_t>(covered.size()) - 1;
    if (!std::equal(covered.begin(), covered.end(), shape.begin() + dim_))
      interpreter_.refuse(ReasonCode::would_raise, "IndexError: the shape of a mask");
    if (covered.size() > 1) {
      current_ = tensor_by(interpreter_, "flatten",
                           {current_, interpreter_.integer(dim_), interpreter_.integer(last)});
      mask = tensor_by(interpreter_, "flatten", {mask});
    }
    const auto positions = nonzero(interpreter_, mask);
    indices_.emplace_back(dim_,
                          tensor_by(interpreter_, "Tensor.select",
                                    {positions, interpreter_.integer(1), interpreter_.integer(0)}));
    ++dim_;
  }

  /// x[...] and x[:] are new tensors that share x's memory.
  void alias() {
    CallArguments arguments;
    auto whole = std::make_shared<SliceValue>();
    whole->start = whole->stop = whole->step = interpreter_.none();
    arguments.positional = {current_, interpreter_.constant_borrowed(Py_Ellipsis)};
    if (current_->value->type.rank() == 0)
      interpreter_.refuse(ReasonCode::expression, "a whole index of a 0-d tensor");
    graph::Attributes attributes;
    attributes.set("dim", int64_t{0});
    current_ = view_of(interpreter_, current_, op::slice, std::move(attributes), arguments);
  }

  Interpreter& interpreter_;
  const bool for_write_;
  std::shared_ptr<Tensor> original_, current_;
  int64_t dim_ = 0;
  std::vector<std::pair<int64_t, Value>> indices_;
};

/// A number as the tensor of no dimensions that eager makes of it.
Value filled(Interpreter& interpreter, const Value& number, graph::DType dtype) {
  if (!is_number(number))
    interpreter.refuse(ReasonCode::expression, "assignment at a tensor index");
  return full(interpreter, {}, number, dtype);
}

/// The value of an assignment without those of its first dimensions, of size 1, that the target
/// does not have.
Value without_leading_ones(Interpreter& interpreter, Value value, size_t dims) {
  const auto has_more = [&](const graph::Shape& shape) {
    return shape.size() > dims && shape.front().is(1);
  };
  while (has_more(as<Tensor>(value)->value->type.shape))
    value = tensor_by(interpreter, "Tensor.squeeze", {value, interpreter.integer(0)});
  return value;
}

}  // namespace

Value index_tensor(Interpreter& interpreter, const std::shared_ptr<Tensor>& tensor,
                   const Value& key) {
  Indexing indexing(interpreter, tensor, /*for_write=*/false);
  indexing.run(key);
  return indexing.result();
}

void write_index(Interpreter& interpreter, const std::shared_ptr<Tensor>& tensor, const Value& key,
                 const Value& value) {
  Indexing indexing(interpreter, tensor, /*for_write=*/true);
  indexing.run(key);
  CallArguments arguments;
  if (indexing.gathers()) {
    arguments.positional = {indexing.viewed(), make_list(indexing.padded_indices()),
                            as<Tensor>(value) != nullptr
                                ? value
                                : filled(interpreter, value, tensor->value->type.dtype)};
    call_named(interpreter, "Tensor.index_put_", arguments);
    return;
  }
  const size_t dims = indexing.viewed()->value->type.shape.size();
  const bool is_tensor = as<Tensor>(value) != nullptr;
  arguments.positional = {indexing.viewed(),
                          is_tensor ? without_leading_ones(interpreter, value, dims) : value};
  call_named(interpreter, is_tensor ? "Tensor.copy_" : "Tensor.fill_", arguments);
}

}  // namespace janus::frontend
