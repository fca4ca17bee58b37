// Methods and functions of tensors that are no operators of the graph, or that give back the same
// object: metadata, conversions, item().
#include <algorithm>
#include <set>

#include "base/policy.h"
#include "frontend/control/list_reductions.h"
#include "frontend/control/symbolic_lists.h"
#include "frontend/core/class_of.h"
#include "frontend/core/known_callables.h"
#include "frontend/core/operations.h"
#include "frontend/core/torch_objects.h"
#include "frontend/objects/subscripts.h"
#include "frontend/tensors/arrays.h"
#include "frontend/tensors/callables.h"
#include "frontend/tensors/described_call.h"
#include "frontend/tensors/tensor.h"
#include "frontend/torch_library/legacy_tensors.h"
#include "frontend/torch_library/special_callables.h"
#include "frontend/values/constants.h"
#include "frontend/values/make.h"
#include "frontend/values/number_kinds.h"
#include "frontend/values/strides.h"
#include "frontend/values/symbolic_list.h"
#include "ops/list.h"

namespace janus::frontend {

using python::Object;

namespace {

using Arguments = CallArguments;

std::shared_ptr<Tensor> self_of(const Arguments& arguments) {
  return arguments.positional.empty() ? nullptr : shared_as<Tensor>(arguments.positional[0]);
}

Value call_size(Interpreter& interpreter, const Arguments& arguments) {
  auto self = self_of(arguments);
  if (self == nullptr) return nullptr;
  Value sizes = size_of(interpreter, *self);
  const Value* dim = arguments.given(1, "dim");
  if (dim == nullptr || known_object(*dim) == Py_None) return sizes;
  return subscript(interpreter, sizes, *dim);
}

Value call_dim(Interpreter& interpreter, const Arguments& arguments) {
  auto self = self_of(arguments);
  return self == nullptr ? nullptr : interpreter.integer(self->value->type.rank());
}

Value call_numel(Interpreter& interpreter, const Arguments& arguments) {
  auto self = self_of(arguments);
  return self == nullptr ? nullptr
                         : interpreter.dimension(graph::element_count(self->value->type.shape));
}

Value call_item(Interpreter& interpreter, const Arguments& arguments) {
  auto self = self_of(arguments);
  return self == nullptr ? nullptr : item(interpreter, *self);
}

/// tolist() of a tensor: of known, small size, or of one dimension.
Value call_tolist(Interpreter& interpreter, const Arguments& arguments) {
  auto self = self_of(arguments);
  if (self == nullptr) return nullptr;
  const graph::Shape& shape = self->value->type.shape;
  if (shape.empty()) return item(interpreter, *self);
  const bool is_long = interpreter.evaluate(shape[0]).value_or(0) > policy::kMostListed;
  if (shape.size() == 1 && !shape[0].is_constant() && !is_long)
    if (Value list = list_of_numbers(interpreter, self)) return list;
  std::vector<Value> elements;
  for (const Value& row : elements_of(interpreter, self)) {
    Arguments one;
    one.positional = {row};
    elements.push_back(call_tolist(interpreter, one));
  }
  return make_list(std::move(elements));
}

Value call_is_floating_point(Interpreter& interpreter, const Arguments& arguments) {
  auto self = self_of(arguments);
  return self == nullptr ? nullptr
                         : interpreter.boolean(graph::is_floating(self->value->type.dtype));
}

Value call_is_complex(Interpreter& interpreter, const Arguments& arguments) {
  auto self = self_of(arguments);
  return self == nullptr ? nullptr
                         : interpreter.boolean(graph::is_complex(self->value->type.dtype));
}

Value call_is_tensor(Interpreter& interpreter, const Arguments& arguments) {
  if (arguments.positional.size() != 1) return nullptr;
  return interpreter.boolean(as<Tensor>(arguments.positional[0]) != nullptr);
}

/// tensor.stride() and tensor.stride(dim): those of dimensions of size 0 or 1 are not followed.
Value call_stride(Interpreter& interpreter, const Arguments& arguments) {
  auto self = self_of(arguments);
  if (self == nullptr || !self->strides) return nullptr;
  for (const graph::Dim& size : self->value->type.shape)
    if (size.lower_bound().value_or(0) < 2) return nullptr;
  std::vector<Value> strides;
  for (const graph::Dim& stride : *self->strides) strides.push_back(interpreter.dimension(stride));
  Value all = make_tuple(std::move(strides));
  if (arguments.positional.size() == 1 && arguments.keywords.empty()) return all;
  const Value* dim = arguments.keyword("dim");
  return subscript(interpreter, all, dim != nullptr ? *dim : arguments.positional.at(1));
}

Value call_is_contiguous(Interpreter& interpreter, const Arguments& arguments) {
  auto self = self_of(arguments);
  if (self == nullptr || arguments.positional.size() > 1 || !arguments.keywords.empty())
    return nullptr;
  const bool contiguous = is_contiguous(*self);
  if (!contiguous && !is_surely_not_contiguous(*self))
    interpreter.refuse(ReasonCode::unsupported_tensor, "the strides of a tensor");
  return interpreter.boolean(contiguous);
}

/// contiguous() gives back a contiguous tensor itself.
Value call_contiguous(Interpreter&, const Arguments& arguments) {
  auto self = self_of(arguments);
  if (self == nullptr || !is_contiguous(*self) || arguments.positional.size() > 1 ||
      !arguments.keywords.empty())
    return nullptr;
  return self;
}

Value cast_tensor(Interpreter& interpreter, const std::shared_ptr<Tensor>& self, graph::DType dtype,
                  bool copy) {
  if (self->value->type.dtype == dtype && !copy) return self;
  graph::Value* value = read(interpreter, *self);
  value = self->value->type.dtype == dtype  // `to` would give the operand itself
              ? op::clone(interpreter.builder(), {value})
              : op::to(interpreter.builder(), {value}, {{"dtype", dtype}});
  bool tracked = self->requires_grad && graph::is_differentiable(dtype);
  if (tracked && !interpreter.modes.grad_enabled)
    value = op::detach(interpreter.builder(), {value});
  auto result = make_tensor(interpreter, value, tracked && interpreter.modes.grad_enabled);
  result->producer = Producer::named("to_copy");
  result->grad_fn_name = "ToCopyBackward0";
  result->strides = strides_of_result(op::clone, self->value->type.shape, {self});
  return result;
}

bool is_cpu(PyObject* object) {
  if (object == nullptr) return false;
  if (PyUnicode_Check(object)) return text_of(object) == "cpu";
  static PyObject* const device = imported("torch.device");
  if (reinterpret_cast<PyObject*>(Py_TYPE(object)) != device) return false;
  Object text = Object::steal(PyObject_Str(object));
  return text_of(text.get()) == "cpu";
}

/// The arguments with flags that the graph has followed: they decide which tensor is given.
Arguments with_known_flags(Interpreter& interpreter, Arguments arguments) {
  const auto follow = [&](Value& value) {
    if (is_flag(value)) value = interpreter.boolean(truth(interpreter, value, -1));
  };
  for (Value& value : arguments.positional) follow(value);
  for (auto& [name, value] : arguments.keywords) follow(value);
  return arguments;
}

/// Whether the tensor lies as the memory format says; None and `preserve_format`: it does.
bool has_format(const Tensor& self, PyObject* format) {
  static PyObject* const preserve = imported("torch.preserve_format");
  static PyObject* const in_order = imported("torch.contiguous_format");
  return format == Py_None || format == preserve || (format == in_order && is_contiguous(self));
}

/// A conversion that puts the elements in another order: torch's own. Where a tensor that has the
/// dtype already may lie so, it may be the result itself.
Value cast_into_format(Interpreter& interpreter, const std::shared_ptr<Tensor>& self,
                       graph::DType dtype, bool copy, const Value& format) {
  static PyObject* const convert = imported("torch.ops.aten._to_copy");
  if (self->value->type.dtype == dtype && !copy)
    interpreter.refuse(ReasonCode::unsupported_argument, "the memory format of a conversion");
  Arguments arguments;
  arguments.positional = {self};
  arguments.keywords = {{"dtype", interpreter.constant(dtype_object(dtype))},
                        {"memory_format", format}};
  return call_operator(interpreter, convert, arguments);
}

/// A conversion to `dtype`: torch's own where the result is complex or lies otherwise.
Value convert(Interpreter& interpreter, const std::shared_ptr<Tensor>& self, graph::DType dtype,
              bool copy, const Value& format) {
  const bool becomes_complex = graph::is_complex(dtype) && self->value->type.dtype != dtype;
  if (becomes_complex || !has_format(*self, known_object(format)))
    return cast_into_format(interpreter, self, dtype, copy, format);
  return cast_tensor(interpreter, self, dtype, copy);
}

Value call_to(Interpreter& interpreter, const Arguments& given) {
  const Arguments arguments = with_known_flags(interpreter, given);
  auto self = self_of(arguments);
  if (self == nullptr) return nullptr;
  graph::DType dtype = self->value->type.dtype;
  bool copy = false;
  Value format = interpreter.none();
  auto take = [&](const Value& value) {
    PyObject* object = known_object(value);
    if (const auto* other = as<Tensor>(value)) {
      dtype = other->value->type.dtype;
      return true;
    }
    if (object == nullptr) return false;
    if (std::optional<graph::DType> wanted = dtype_of(object)) {
      dtype = *wanted;
      return true;
    }
    return object == Py_None || is_cpu(object);
  };
  for (size_t i = 1; i < arguments.positional.size(); ++i) {
    PyObject* object = known_object(arguments.positional[i]);
    if (object == Py_False && i > 1) continue;
    if (object == Py_True && i > 1) {
      // non_blocking, then copy
      bool after_flag = PyBool_Check(known_object(arguments.positional[i - 1]));
      if (after_flag) copy = true;
      continue;
    }
    if (!take(arguments.positional[i])) return nullptr;
  }
  for (const auto& [name, value] : arguments.keywords) {
    PyObject* object = known_object(value);
    if (name == "copy" && object != nullptr && PyBool_Check(object))
      copy = object == Py_True;
    else if (name == "non_blocking")
      continue;
    else if (name == "memory_format" && object != nullptr)
      format = value;
    else if ((name != "dtype" && name != "device" && name != "other") || !take(value))
      return nullptr;
  }
  return convert(interpreter, self, dtype, copy, format);
}

/// tensor.float(memory_format=torch.preserve_format) and its like.
template <graph::DType dtype>
Value call_cast(Interpreter& interpreter, const Arguments& arguments) {
  auto self = self_of(arguments);
  const Value* given = arguments.keyword("memory_format");
  if (self == nullptr || arguments.positional.size() > 1 ||
      arguments.keywords.size() > (given == nullptr ? 0 : 1))
    return nullptr;
  const Value format = given == nullptr ? interpreter.none() : *given;
  if (known_object(format) == nullptr) return nullptr;
  return convert(interpreter, self, dtype, false, format);
}

Value call_type_as(Interpreter& interpreter, const Arguments& arguments) {
  auto self = self_of(arguments);
  if (self == nullptr || arguments.positional.size() != 2) return nullptr;
  auto* other = as<Tensor>(arguments.positional[1]);
  return other == nullptr
             ? nullptr
             : convert(interpreter, self, other->value->type.dtype, false, interpreter.none());
}

/// Tensor.type of a dtype, or of a class such as torch.FloatTensor or its name; without any it is
/// that name.
Value call_type(Interpreter& interpreter, const Arguments& arguments) {
  auto self = self_of(arguments);
  const size_t given_count = arguments.positional.size() + arguments.keywords.size();
  if (self == nullptr || given_count > 2) return nullptr;
  const Value* given =
      arguments.positional.size() > 1 ? &arguments.positional[1] : arguments.keyword("dtype");
  if (given_count == 1 || (given != nullptr && is_none(*given))) {
    const char* name = class_name_of(self->value->type.dtype);
    return name == nullptr ? nullptr : interpreter.string(name);
  }
  const Object wanted = Object::borrow(given == nullptr ? nullptr : known_object(*given));
  if (!wanted) return nullptr;
  auto dtype = PyUnicode_CheckExact(wanted.get()) ? dtype_of_class_name(text_of(wanted.get()))
                                                  : dtype_of(wanted.get());
  if (!dtype) {
    const Object of_class = Object::steal(PyObject_GetAttrString(wanted.get(), "dtype"));
    PyErr_Clear();
    const Object is_cuda = Object::steal(PyObject_GetAttrString(wanted.get(), "is_cuda"));
    PyErr_Clear();
    if (of_class && is_cuda.is(Py_False)) dtype = dtype_of(of_class.get());
  }
  return dtype ? convert(interpreter, self, *dtype, false, interpreter.none()) : nullptr;
}

Value call_element_size(Interpreter& interpreter, const Arguments& arguments) {
  auto self = self_of(arguments);
  return self == nullptr ? nullptr : interpreter.integer(graph::byte_size(self->value->type.dtype));
}

/// Tensor.narrow at a varying start, which counts from the end where it is negative. Null: torch's
/// own rule is enough.
Value call_narrow(Interpreter& interpreter, const Arguments& arguments) {
  static PyObject* const narrow = imported("torch.narrow");
  constexpr size_t kStart = 2;
  const Value *self = arguments.given(0, "input"), *dim = arguments.given(1, "dim");
  const Value* start = arguments.given(kStart, "start");
  if (self == nullptr || as<Tensor>(*self) == nullptr || dim == nullptr || start == nullptr ||
      as<Number>(*start) == nullptr)
    return nullptr;
  const Value zero = interpreter.integer(0);
  if (holds(interpreter, *start, syntax::CompareOperator::GtE, zero)) return nullptr;
  const Value size = subscript(interpreter, size_of(interpreter, *as<Tensor>(*self)), *dim);
  const Value position = binary(interpreter, syntax::Operator::Add, size, *start);
  if (!holds(interpreter, position, syntax::CompareOperator::GtE, zero))
    interpreter.refuse(ReasonCode::would_raise, "IndexError: start out of range");
  Arguments changed = arguments;
  changed.replace(kStart, "start", position);
  return call_operator(interpreter, narrow, changed);
}

/// torch.cat passes over vectors without elements, whatever ranks the others have: a cache of keys
/// begins as one. Null: there are none.
Value call_cat(Interpreter& interpreter, const Arguments& arguments) {
  static PyObject* const cat = imported("torch.cat");
  const Value* given = arguments.given(0, "tensors");
  const auto* tensors = given == nullptr ? nullptr : as<Sequence>(*given);
  if (tensors == nullptr || tensors->elements.rolled() != nullptr) return nullptr;
  std::vector<Value> kept;
  std::set<graph::DType> dtypes;
  for (const Value& each : tensors->elements) {
    const auto* tensor = as<Tensor>(each);
    if (tensor == nullptr) return nullptr;
    const graph::Type& type = tensor->value->type;
    dtypes.insert(type.dtype);
    if (type.rank() != 1 || !type.shape[0].is(0) || tensor->requires_grad) kept.push_back(each);
  }
  const bool is_any_of_rank = std::ranges::any_of(
      kept, [](const Value& each) { return as<Tensor>(each)->value->type.rank() > 1; });
  if (kept.size() == tensors->elements.size() || !is_any_of_rank || dtypes.size() > 1)
    return nullptr;
  Arguments changed = arguments;
  changed.replace(0, "tensors", make_tuple(std::move(kept)));
  return call_operator(interpreter, cat, changed);
}

/// Whether all elements of a tensor of flags are true.
Value all_hold(Interpreter& interpreter, const Value& flags) {
  auto all = tensor_by(interpreter, "all", {flags});
  return all == nullptr ? nullptr : item(interpreter, *all);
}

Value call_equal(Interpreter& interpreter, const Arguments& arguments) {
  auto self = self_of(arguments);
  if (self == nullptr || arguments.positional.size() != 2 || !arguments.keywords.empty())
    return nullptr;
  auto other = shared_as<Tensor>(arguments.positional[1]);
  // Other shapes may be the same in some runs; other dtypes are an error.
  if (other == nullptr || self->value->type != other->value->type) return nullptr;
  return all_hold(interpreter, tensor_by(interpreter, "eq", {self, other}));
}

Value call_allclose(Interpreter& interpreter, const Arguments& arguments) {
  if (self_of(arguments) == nullptr) return nullptr;
  static PyObject* const isclose = imported("torch.isclose");
  return all_hold(interpreter,
                  call(interpreter, interpreter.constant_borrowed(isclose), arguments));
}

/// transpose_() and its like write nothing: they change where the tensor looks. One that nobody
/// shares memory with is the view's contents from then on.
template <const char* const* name>
Value call_view_in_place(Interpreter& interpreter, const Arguments& arguments) {
  auto self = self_of(arguments);
  if (self == nullptr) return nullptr;
  const bool is_shared = self->base != nullptr || self->taken_from != nullptr || self->is_viewed ||
                         self->list_memory != nullptr || self->is_borrowed;
  if (self->source != nullptr || is_shared)
    interpreter.refuse(ReasonCode::unsupported_tensor,
                       cat(*name, "_ of a tensor that shares memory with another"));
  const auto view = shared_as<Tensor>(call_named(interpreter, *name, arguments));
  if (view == nullptr || view->base != self || !view->strides)
    interpreter.refuse(ReasonCode::unsupported_tensor, cat(*name, "_ of a tensor"));
  static PyObject* const in_place = imported(cat("torch.", *name, "_"));
  auto produced_by = describe_call(interpreter, in_place, arguments, 0);
  write_in_place(interpreter, self, *view->view_node, view->value, self->requires_grad);
  self->is_viewed = false;
  self->strides = view->strides;
  self->producer = view->producer;
  self->produced_by = std::move(produced_by);
  return self;
}
constexpr const char* kT = "Tensor.t";
constexpr const char* kTranspose = "Tensor.transpose";
constexpr const char* kSqueeze = "Tensor.squeeze";
constexpr const char* kUnsqueeze = "Tensor.unsqueeze";

/// torch.tensor of numbers, known or computed by the graph, and of nested lists of such.
Value tensor_from(Interpreter& interpreter, const Value& data, graph::DType dtype) {
  Value shadow = opened(interpreter, data);
  if (const Rolled* list = rolled(shadow))
    if (Value tensor = tensor_of_numbers(interpreter, *list, dtype)) return tensor;
  Arguments arguments;
  if (const auto* sequence = as<Sequence>(shadow); sequence != nullptr && !is_dict_view(shadow)) {
    if (sequence->elements.empty())
      return full(interpreter, {interpreter.integer(0)}, interpreter.integer(0), dtype);
    if (sequence->elements.size() > 256)
      interpreter.refuse(ReasonCode::unsupported_argument, "torch.tensor of a list of this kind");
    std::vector<Value> rows;
    for (const Value& element : sequence->elements)
      rows.push_back(tensor_from(interpreter, element, dtype));
    arguments.positional = {make_list(std::move(rows))};
    return call_named(interpreter, "stack", arguments);
  }
  if (!is_number(shadow)) interpreter.refuse(ReasonCode::unsupported_argument, "torch.tensor");
  arguments.positional = {make_tuple({}), shadow};
  arguments.keywords.emplace_back("dtype", interpreter.constant(dtype_object(dtype)));
  return call_named(interpreter, "full", arguments);
}

/// The dtype that torch.tensor infers: the widest kind of number in the data.
int number_rank(Interpreter& interpreter, const Value& data) {
  Value shadow = opened(interpreter, data);
  if (const Rolled* list = rolled(shadow); list != nullptr && list->form.type.is_number()) {
    using Kind = graph::Type::Kind;
    return list->form.type.kind == Kind::f64 ? 2 : list->form.type.kind == Kind::i64 ? 1 : 0;
  }
  if (const auto* sequence = as<Sequence>(shadow); sequence != nullptr && !is_dict_view(shadow)) {
    int rank = sequence->elements.empty() ? 2 : 0;
    for (const Value& element : sequence->elements)
      rank = std::max(rank, number_rank(interpreter, element));
    return rank;
  }
  PyTypeObject* type = class_of(shadow);
  if (type == &PyBool_Type) return 0;
  if (type == &PyLong_Type) return 1;
  if (type == &PyFloat_Type) return 2;
  interpreter.refuse(ReasonCode::unsupported_argument, "torch.tensor of data of this kind");
}

/// torch.tensor(data, …). `contents`: those of the array that the data is; null: it is none.
Value tensor_of_data(Interpreter& interpreter, const Arguments& arguments,
                     const std::shared_ptr<Tensor>& contents) {
  std::optional<graph::DType> dtype;
  bool requires_grad = false;
  for (const auto& [name, value] : arguments.keywords) {
    PyObject* object = known_object(value);
    if (name == "dtype" && object != nullptr && object != Py_None)
      dtype = dtype_of(object);
    else if (name == "requires_grad" && object == Py_True)
      requires_grad = true;
    else if (object != Py_None && object != Py_False && !(name == "device" && is_cpu(object)))
      return nullptr;
  }
  if (contents != nullptr) {
    const auto copy = shared_as<Tensor>(cast_tensor(
        interpreter, contents, dtype.value_or(contents->value->type.dtype), /*copy=*/true));
    if (requires_grad) switch_requires_grad(interpreter, copy, true);
    return copy;
  }
  int rank = number_rank(interpreter, arguments.positional[0]);
  graph::DType inferred = rank == 0   ? graph::DType::b1
                          : rank == 1 ? graph::DType::i64
                                      : interpreter.output().environment.default_dtype;
  Value tensor = tensor_from(interpreter, arguments.positional[0], dtype.value_or(inferred));
  if (requires_grad) switch_requires_grad(interpreter, shared_as<Tensor>(tensor), true);
  return tensor;
}

Value call_tensor(Interpreter& interpreter, const Arguments& arguments) {
  if (arguments.positional.size() != 1) return nullptr;
  return tensor_of_data(interpreter, arguments,
                        contents_of_array(interpreter, arguments.positional[0]));
}

/// Of a tensor it would be a copy, with a warning.
Value call_new_tensor(Interpreter& interpreter, const Arguments& arguments) {
  auto self = self_of(arguments);
  if (self == nullptr || arguments.positional.size() != 2 || !arguments.keywords.empty() ||
      as<Tensor>(arguments.positional[1]) != nullptr)
    return nullptr;
  return tensor_from(interpreter, arguments.positional[1], self->value->type.dtype);
}

bool has_other_dtype(const Arguments& arguments, const Tensor& tensor) {
  const Value* const wanted = arguments.keyword("dtype");
  PyObject* const dtype = wanted == nullptr ? nullptr : known_object(*wanted);
  return dtype != nullptr && dtype != Py_None && dtype_of(dtype) != tensor.value->type.dtype;
}

/// A tensor of that dtype already comes back itself; numbers and lists of them are new tensors.
Value call_as_tensor(Interpreter& interpreter, const Arguments& arguments) {
  if (arguments.positional.size() != 1) return nullptr;
  if (as<Tensor>(arguments.positional[0]) != nullptr) return call_to(interpreter, arguments);
  const auto contents = contents_of_array(interpreter, arguments.positional[0]);
  // One of the same dtype is on the array's memory.
  if (contents != nullptr && !has_other_dtype(arguments, *contents)) return nullptr;
  return tensor_of_data(interpreter, arguments, contents);
}

/// Tensors whose contents are not defined may hold zeros.
template <const char* const* name>
Value call_zeros_instead(Interpreter& interpreter, const Arguments& arguments) {
  return call_named(interpreter, *name, arguments);
}
constexpr const char* kZeros = "zeros";
constexpr const char* kZerosLike = "zeros_like";
constexpr const char* kNewZeros = "Tensor.new_zeros";

Value call_cpu(Interpreter&, const Arguments& arguments) {
  const bool is_alone = arguments.positional.size() == 1 && arguments.keywords.empty();
  return is_alone ? self_of(arguments) : nullptr;
}

/// A view of all elements in a row, of a copy if they don't lie so.
Value call_ravel(Interpreter& interpreter, const Arguments& arguments) {
  const auto self = self_of(arguments);
  if (self == nullptr || arguments.positional.size() + arguments.keywords.size() != 1)
    return nullptr;
  const auto in_order = tensor_by(interpreter, "Tensor.contiguous", {self});
  return tensor_by(interpreter, "Tensor.view", {in_order, interpreter.integer(-1)});
}

Value call_getitem(Interpreter& interpreter, const Arguments& arguments) {
  auto self = self_of(arguments);
  if (self == nullptr || arguments.positional.size() != 2) return nullptr;
  return index_tensor(interpreter, self, arguments.positional[1]);
}

Value call_setitem(Interpreter& interpreter, const Arguments& arguments) {
  auto self = self_of(arguments);
  if (self == nullptr || arguments.positional.size() != 3) return nullptr;
  write_index(interpreter, self, arguments.positional[1], arguments.positional[2]);
  return interpreter.none();
}

/// view_as, expand_as, reshape_as: the operator with the other tensor's size.
template <const char* const* name>
Value call_as_other(Interpreter& interpreter, const Arguments& arguments) {
  auto self = self_of(arguments);
  if (self == nullptr || arguments.positional.size() != 2) return nullptr;
  auto* other = as<Tensor>(arguments.positional[1]);
  if (other == nullptr) return nullptr;
  Arguments sized;
  sized.positional = {self, size_of(interpreter, *other)};
  return call_named(interpreter, *name, sized);
}
constexpr const char* kView = "Tensor.view";
constexpr const char* kExpand = "Tensor.expand";
constexpr const char* kReshape = "Tensor.reshape";

/// The shape that tensors of all these shapes are broadcast to. Sizes that are equal in this call
/// are assumed to be so.
graph::Shape common_shape(Interpreter& interpreter, const std::vector<graph::Shape>& shapes) {
  graph::Shape common;
  for (const graph::Shape& shape : shapes) {
    if (shape.size() > common.size())
      common.insert(common.begin(), shape.size() - common.size(), graph::Dim(1));
    for (size_t i = 0; i < shape.size(); ++i) {
      graph::Dim& size = common[common.size() - shape.size() + i];
      const graph::Dim& other = shape[i];
      if (other == size || other == graph::Dim(1)) continue;
      if (size == graph::Dim(1)) {
        size = other;
        continue;
      }
      std::optional<int64_t> one = interpreter.evaluate(size), two = interpreter.evaluate(other);
      if (!one || !two)
        interpreter.refuse(ReasonCode::unsupported_argument, "sizes that only the run knows");
      if (one != two) interpreter.refuse(ReasonCode::would_raise, "sizes that can't be broadcast");
      interpreter.expect_one_name(size, other);
      interpreter.assume_equal(size, other);
    }
  }
  return common;
}

/// torch.broadcast_tensors: a tensor that has the shape already comes back itself.
Value call_broadcast_tensors(Interpreter& interpreter, const Arguments& arguments) {
  std::vector<Value> given = arguments.positional;
  if (given.size() == 1 && as<Tensor>(given[0]) == nullptr)
    given = elements_of(interpreter, given[0]);
  std::vector<graph::Shape> shapes;
  for (const Value& each : given) {
    const auto* tensor = as<Tensor>(each);
    if (tensor == nullptr) return nullptr;
    shapes.push_back(tensor->value->type.shape);
  }
  if (!arguments.keywords.empty()) return nullptr;
  const graph::Shape common = common_shape(interpreter, shapes);
  std::vector<Value> results;
  for (size_t i = 0; i < given.size(); ++i) {
    graph::Shape wanted = common;  // with its own sizes: others may be equal by assumption only
    const size_t missing = common.size() - shapes[i].size();
    for (size_t axis = 0; axis < shapes[i].size(); ++axis)
      if (shapes[i][axis] != graph::Dim(1)) wanted[missing + axis] = shapes[i][axis];
    if (wanted == shapes[i]) {
      results.push_back(given[i]);
      continue;
    }
    std::vector<Value> sizes;
    for (const graph::Dim& dim : wanted) sizes.push_back(interpreter.dimension(dim));
    Arguments expand;
    expand.positional = {given[i], make_tuple(std::move(sizes))};
    results.push_back(call_named(interpreter, "Tensor.expand", expand));
  }
  return make_tuple(std::move(results));
}

/// Python's operator methods called by name: x.__add__(y).
template <syntax::Operator op>
Value call_operator_method(Interpreter& interpreter, const Arguments& arguments) {
  if (arguments.positional.size() != 2) return nullptr;
  return binary(interpreter, op, arguments.positional[0], arguments.positional[1]);
}

/// The same with the operands in the other order: x.__radd__(y).
template <syntax::Operator op>
Value call_reflected_method(Interpreter& interpreter, const Arguments& arguments) {
  if (arguments.positional.size() != 2) return nullptr;
  return binary(interpreter, op, arguments.positional[1], arguments.positional[0]);
}

/// Methods of what their operator takes second: x.where(condition, y) is where(condition, x, y).
struct SecondOperand {
  const char* function;
  const char* first;  ///< how the operator's first parameter is called
};
constexpr SecondOperand kWhere{"torch.where", "condition"}, kPolygamma{"torch.polygamma", "n"};

template <const SecondOperand* method>
Value call_as_second(Interpreter& interpreter, const Arguments& arguments) {
  Arguments all = arguments;
  if (all.positional.size() > 1) {
    std::swap(all.positional[0], all.positional[1]);
  } else if (const Value* first = arguments.keyword(method->first)) {
    all.positional.insert(all.positional.begin(), *first);
    std::erase_if(all.keywords, [](const auto& each) { return each.first == method->first; });
  } else {
    return nullptr;
  }
  return call(interpreter, interpreter.constant_borrowed(imported(method->function)), all);
}

}  // namespace

std::span<const SpecialCallable> tensor_callables() {
  using graph::DType;
  using syntax::Operator;
  static constexpr SpecialCallable table[] = {
      {"torch.Tensor.size", call_size},
      {"torch.Tensor.dim", call_dim},
      {"torch.Tensor.ndimension", call_dim},
      {"torch.Tensor.numel", call_numel},
      {"torch.Tensor.nelement", call_numel},
      {"torch.numel", call_numel},
      {"torch.Tensor.item", call_item},
      {"torch.Tensor.tolist", call_tolist},
      {"torch.Tensor.is_floating_point", call_is_floating_point},
      {"torch.is_floating_point", call_is_floating_point},
      {"torch.Tensor.is_complex", call_is_complex},
      {"torch.Tensor.narrow", call_narrow},
      {"torch.narrow", call_narrow},
      {"torch.cat", call_cat},
      {"torch.concat", call_cat},
      {"torch.concatenate", call_cat},
      {"torch.is_complex", call_is_complex},
      {"torch.is_tensor", call_is_tensor},
      {"torch.Tensor.is_contiguous", call_is_contiguous},
      {"torch.Tensor.stride", call_stride},
      {"torch.Tensor.contiguous", call_contiguous},
      {"torch.Tensor.to", call_to},
      {"torch.Tensor.float", call_cast<DType::f32>},
      {"torch.Tensor.double", call_cast<DType::f64>},
      {"torch.Tensor.half", call_cast<DType::f16>},
      {"torch.Tensor.bfloat16", call_cast<DType::bf16>},
      {"torch.Tensor.long", call_cast<DType::i64>},
      {"torch.Tensor.int", call_cast<DType::i32>},
      {"torch.Tensor.short", call_cast<DType::i16>},
      {"torch.Tensor.char", call_cast<DType::i8>},
      {"torch.Tensor.byte", call_cast<DType::u8>},
      {"torch.Tensor.bool", call_cast<DType::b1>},
      {"torch.Tensor.type", call_type},
      {"torch.Tensor.cfloat", call_cast<DType::c64>},
      {"torch.Tensor.cdouble", call_cast<DType::c128>},
      {"torch.Tensor.type_as", call_type_as},
      {"torch.Tensor.element_size", call_element_size},
      {"torch.Tensor.equal", call_equal},
      {"torch.equal", call_equal},
      {"torch.Tensor.allclose", call_allclose},
      {"torch.allclose", call_allclose},
      {"torch.Tensor.cpu", call_cpu},
      {"torch.Tensor.ravel", call_ravel},
      {"torch.ravel", call_ravel},
      {"torch.Tensor.t_", call_view_in_place<&kT>},
      {"torch.Tensor.transpose_", call_view_in_place<&kTranspose>},
      {"torch.Tensor.swapaxes_", call_view_in_place<&kTranspose>},
      {"torch.Tensor.swapdims_", call_view_in_place<&kTranspose>},
      {"torch.Tensor.squeeze_", call_view_in_place<&kSqueeze>},
      {"torch.Tensor.unsqueeze_", call_view_in_place<&kUnsqueeze>},
      {"torch.tensor", call_tensor},
      {"torch.Tensor.new_tensor", call_new_tensor},
      {"torch.as_tensor", call_as_tensor},
      {"torch.empty", call_zeros_instead<&kZeros>},
      {"torch.empty_like", call_zeros_instead<&kZerosLike>},
      {"torch.Tensor.new_empty", call_zeros_instead<&kNewZeros>},
      {"torch.Tensor.__getitem__", call_getitem},
      {"torch.Tensor.__setitem__", call_setitem},
      {"torch.Tensor.view_as", call_as_other<&kView>},
      {"torch.Tensor.expand_as", call_as_other<&kExpand>},
      {"torch.Tensor.reshape_as", call_as_other<&kReshape>},
      {"torch.broadcast_tensors", call_broadcast_tensors},
      {"torch.Tensor.where", call_as_second<&kWhere>},
      {"torch.Tensor.polygamma", call_as_second<&kPolygamma>},
      {"torch.Tensor.__add__", call_operator_method<Operator::Add>},
      {"torch.Tensor.__mul__", call_operator_method<Operator::Mult>},
      {"torch.Tensor.__sub__", call_operator_method<Operator::Sub>},
      {"torch.Tensor.__truediv__", call_operator_method<Operator::Div>},
      {"torch.Tensor.__matmul__", call_operator_method<Operator::MatMult>},
      {"torch.Tensor.__pow__", call_operator_method<Operator::Pow>},
      {"torch.Tensor.__radd__", call_reflected_method<Operator::Add>},
      {"torch.Tensor.__rmul__", call_reflected_method<Operator::Mult>},
  };
  return table;
}

}  // namespace janus::frontend
