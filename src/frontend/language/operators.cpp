// Constants are computed by CPython now; tensors take torch's operators; everything else goes by
// the class of the left operand, then of the right one.
#include "frontend/language/operators.h"

#include <algorithm>

#include "frontend/control/journal.h"
#include "frontend/control/list_parts.h"
#include "frontend/control/optional.h"
#include "frontend/core/class_entry.h"
#include "frontend/core/class_of.h"
#include "frontend/core/exceptions.h"
#include "frontend/core/keys.h"
#include "frontend/core/object_kinds.h"
#include "frontend/core/operations.h"
#include "frontend/core/torch_objects.h"
#include "frontend/language/number_operators.h"
#include "frontend/language/numbers.h"
#include "frontend/language/numpy_numbers.h"
#include "frontend/language/strings.h"
#include "frontend/objects/attributes.h"
#include "frontend/objects/container_classes.h"
#include "frontend/objects/container_methods.h"
#include "frontend/objects/dict_views.h"
#include "frontend/objects/folding.h"
#include "frontend/objects/set_methods.h"
#include "frontend/tensors/callables.h"
#include "frontend/values/constants.h"
#include "frontend/values/number_kinds.h"
#include "frontend/values/operands.h"
#include "frontend/values/symbolic_list.h"
#include "graph/op.h"
#include "ops/list.h"
#include "python/integer.h"

namespace janus::frontend {

using graph::Type;
using python::Object;
using syntax::Operator;
using syntax::UnaryOperator;

namespace {

// --- tensors ------------------------------------------------------------------------------------

Value tensor_call(Interpreter& interpreter, std::string_view name, std::vector<Value> operands) {
  CallArguments arguments;
  arguments.positional = std::move(operands);
  return call_named(interpreter, name, arguments);
}

const char* tensor_operator(Operator op) {
  switch (op) {
    case Operator::Add:
      return "Tensor.add";
    case Operator::Sub:
      return "Tensor.sub";
    case Operator::Mult:
      return "Tensor.mul";
    case Operator::MatMult:
      return "Tensor.matmul";
    case Operator::Div:
      return "Tensor.div";
    case Operator::Mod:
      return "Tensor.remainder";
    case Operator::Pow:
      return "Tensor.pow";
    case Operator::LShift:
      return "Tensor.bitwise_left_shift";
    case Operator::RShift:
      return "Tensor.bitwise_right_shift";
    case Operator::BitOr:
      return "Tensor.bitwise_or";
    case Operator::BitXor:
      return "Tensor.bitwise_xor";
    case Operator::BitAnd:
      return "Tensor.bitwise_and";
    case Operator::FloorDiv:
      return "Tensor.floor_divide";
  }
  return "";
}

/// number op tensor: what Tensor.__r<op>__ does.
Value reflected(Interpreter& interpreter, Operator op, const Value& number, const Value& tensor) {
  switch (op) {
    case Operator::Sub:
      return tensor_call(interpreter, "rsub", {tensor, number});
    case Operator::Div: {
      Value inverse = tensor_call(interpreter, "Tensor.reciprocal", {tensor});
      return tensor_call(interpreter, "Tensor.mul", {inverse, number});
    }
    case Operator::Pow:
      return tensor_call(interpreter, "pow", {number, tensor});
    case Operator::FloorDiv:
      return tensor_call(interpreter, "floor_divide", {number, tensor});
    case Operator::Mod:
      return tensor_call(interpreter, "remainder", {number, tensor});
    case Operator::Add:
    case Operator::Mult:
    case Operator::BitOr:
    case Operator::BitXor:
    case Operator::BitAnd:
      return tensor_call(interpreter, tensor_operator(op), {tensor, number});
    default:
      interpreter.refuse(ReasonCode::expression, cat("a number ", syntax::symbol(op), " a tensor"));
  }
}

Value tensor_binary(Interpreter& interpreter, Operator op, const Value& left, const Value& right) {
  if (const Value number = number_of_numpy(interpreter, left))
    return tensor_binary(interpreter, op, number, right);
  if (const Value number = number_of_numpy(interpreter, right))
    return tensor_binary(interpreter, op, left, number);
  bool fits = (as<Tensor>(left) != nullptr || is_number(left)) &&
              (as<Tensor>(right) != nullptr || is_number(right));
  if (!fits)
    interpreter.refuse(ReasonCode::expression, cat("a tensor ", syntax::symbol(op), " an object"));
  if (as<Tensor>(left) == nullptr) return reflected(interpreter, op, left, right);
  return tensor_call(interpreter, tensor_operator(op), {left, right});
}

// --- containers and objects ---------------------------------------------------------------------

/// Whether it is a torch.Size. Concatenation and repetition keep that class.
bool is_size(const Sequence& sequence) {
  return sequence.type.is(reinterpret_cast<PyObject*>(size_class()));
}

Value repeated(Interpreter& interpreter, const Value& value, const Value& count) {
  const Sequence& sequence = *as<Sequence>(value);
  int64_t times = PyLong_AsLongLong(folded(interpreter, count).get());
  if (times == -1 && PyErr_Occurred() != nullptr) interpreter.refuse_raised();
  if (times == 1 && is_plain_tuple(sequence)) return value;
  auto result = std::make_shared<Sequence>(sequence.is_list);
  if (is_size(sequence)) result->type = sequence.type;
  for (int64_t i = 0; i < times; ++i) {
    result->elements.insert(result->elements.end(), sequence.elements.begin(),
                            sequence.elements.end());
    if (result->elements.size() > static_cast<size_t>(Interpreter::most_rounds()))
      interpreter.refuse(ReasonCode::limit, "a container of too many elements");
  }
  return result;
}

Value sequence_binary(Interpreter& interpreter, Operator op, const Value& left,
                      const Value& right) {
  if (is_view(left) || is_view(right))
    raise(interpreter, PyExc_TypeError, cat("TypeError: a view ", syntax::symbol(op)));
  const auto* a = as<Sequence>(left);
  const auto* b = as<Sequence>(right);
  if (op == Operator::Mult && a != nullptr && is_number(right) && !(a->is_list && a->type))
    return repeated(interpreter, left, right);
  if (op == Operator::Mult && b != nullptr && is_number(left) && !(b->is_list && b->type))
    return repeated(interpreter, right, left);
  const bool is_typed =
      (a != nullptr && a->is_list && a->type) || (b != nullptr && b->is_list && b->type);  // deques
  if (!is_typed && op == Operator::Add && a != nullptr && b != nullptr &&
      a->is_list == b->is_list) {
    auto result = std::make_shared<Sequence>(a->is_list);
    for (const auto& [side, other] : {std::pair(a, b), std::pair(b, a)}) {
      if (!is_size(*side)) continue;
      for (const Value& element : other->elements)
        if (class_of(element) != &PyLong_Type)
          interpreter.refuse(ReasonCode::expression, "a torch.Size with other than ints");
      result->type = side->type;
    }
    if (rolled(left) != nullptr || rolled(right) != nullptr) {
      result->elements = ElementList(joined(interpreter, a->elements, b->elements));
      return result;
    }
    if (is_plain_tuple(*b) && a->elements.empty() && !a->is_list) return right;
    if (is_plain_tuple(*a) && b->elements.empty()) return left;
    result->elements = a->elements;
    result->elements.insert(result->elements.end(), b->elements.begin(), b->elements.end());
    return result;
  }
  interpreter.refuse(ReasonCode::expression, cat("containers with ", syntax::symbol(op)));
}

const char* dunder(Operator op) {
  switch (op) {
    case Operator::Add:
      return "add__";
    case Operator::Sub:
      return "sub__";
    case Operator::Mult:
      return "mul__";
    case Operator::MatMult:
      return "matmul__";
    case Operator::Div:
      return "truediv__";
    case Operator::Mod:
      return "mod__";
    case Operator::Pow:
      return "pow__";
    case Operator::LShift:
      return "lshift__";
    case Operator::RShift:
      return "rshift__";
    case Operator::BitOr:
      return "or__";
    case Operator::BitXor:
      return "xor__";
    case Operator::BitAnd:
      return "and__";
    case Operator::FloorDiv:
      return "floordiv__";
  }
  return "";
}

/// Whether the right operand's method comes first: its class is derived from the left one's, and
/// has one of its own.
bool is_right_first(Interpreter& interpreter, PyTypeObject* left, PyTypeObject* right,
                    const std::string& method) {
  return left != nullptr && right != nullptr && left != right &&
         PyType_IsSubtype(right, left) != 0 &&
         class_entry(interpreter, left, method.c_str()) !=
             class_entry(interpreter, right, method.c_str());
}

/// Operators that a user's class defines in Python.
Value object_binary(Interpreter& interpreter, Operator op, const Value& left, const Value& right) {
  const std::string method = std::string("__") + dunder(op),
                    reverse = std::string("__r") + dunder(op);
  auto attempt = [&](const Value& self, const Value& other, const std::string& name) -> Value {
    bool object =
        as<Instance>(self) != nullptr || (as<Known>(self) != nullptr && !is_constant(self));
    if (!object) return nullptr;
    Value found = special_method(interpreter, self, name.c_str());
    if (found == nullptr) return nullptr;
    CallArguments arguments;
    arguments.positional = {other};
    Value result = call(interpreter, found, arguments);
    const auto* outcome = as<Known>(result);
    return outcome != nullptr && outcome->object.is(Py_NotImplemented) ? nullptr : result;
  };
  PyTypeObject *const type = class_of(left), *const other = class_of(right);
  const bool right_first = is_right_first(interpreter, type, other, reverse);
  if (right_first)
    if (Value result = attempt(right, left, reverse)) return result;
  if (Value result = attempt(left, right, method)) return result;
  if (!right_first && (type == nullptr || type != other))
    if (Value result = attempt(right, left, reverse)) return result;
  interpreter.refuse(ReasonCode::expression, cat("objects with ", syntax::symbol(op)));
}

/// Whether `|` of the object is that of all classes, and asks no method of the program.
bool joins_as_class(Interpreter& interpreter, PyObject* object) {
  static PyObject* const union_type = imported("types.UnionType");
  PyTypeObject* const type = Py_TYPE(object);
  if (reinterpret_cast<PyObject*>(type) == union_type) {
    const Object parts = interpreter.must(PyObject_GetAttrString(object, "__args__"));
    return std::ranges::all_of(python::elements(parts.get()), [&](const Object& part) {
      return joins_as_class(interpreter, part.get());
    });
  }
  if (!PyType_Check(object)) return object == Py_None;
  if (type == &PyType_Type) return true;
  return std::ranges::none_of(
      std::initializer_list<const char*>{"__or__", "__ror__", "__eq__", "__hash__"},
      [&](const char* name) { return PyFunction_Check(class_entry(interpreter, type, name)); });
}

/// `list | tuple`, `int | None`: a union of classes; null for others.
Value class_union(Interpreter& interpreter, Operator op, const Value& left, const Value& right) {
  const auto *first = as<Known>(left), *second = as<Known>(right);
  if (op != Operator::BitOr || first == nullptr || second == nullptr) return nullptr;
  for (const Known* known : {first, second})
    if (!joins_as_class(interpreter, known->object.get())) return nullptr;
  for (const Known* known : {first, second}) interpreter.assume_identity(*known);
  return interpreter.constant(
      interpreter.must(PyNumber_Or(first->object.get(), second->object.get())));
}

bool is_tuple_of_constants(const Value& value) {
  const auto* sequence = as<Sequence>(value);
  return sequence != nullptr && is_plain_tuple(*sequence) && rolled(value) == nullptr &&
         std::ranges::all_of(sequence->elements.known(), is_constant);
}

Value string_binary(Interpreter& interpreter, Operator op, const Value& left, const Value& right) {
  bool concatenates = op == Operator::Add && is_string(left) && is_string(right);
  bool formats = op == Operator::Mod && is_string(left);
  bool repeats = op == Operator::Mult && kind_of_number(right) == Type::Kind::i64;
  if (!concatenates && !formats && !repeats)
    interpreter.refuse(ReasonCode::expression, cat("a string ", syntax::symbol(op)));
  CallArguments arguments;
  arguments.positional = {left, right};
  static PyObject* const add = imported("operator.add");
  static PyObject* const mul = imported("operator.mul");
  if (formats && is_constant(left) && is_tuple_of_constants(right))
    return interpreter.constant(
        interpreter.must(apply_python(op, known_object(left), folded(interpreter, right).get())));
  if (formats) return format_by_percent(interpreter, left, right);
  PyObject* const function = concatenates ? add : mul;
  return defer(interpreter, Object::borrow(function), arguments, &PyUnicode_Type);
}

/// left | right of dicts
Value dictionary_union(const Frames& frames, Operator op, const Value& left, const Value& right) {
  const auto *a = as<Dictionary>(left), *b = as<Dictionary>(right);
  if (op != Operator::BitOr || a == nullptr || b == nullptr || a->type || b->type) return nullptr;
  auto result = std::make_shared<Dictionary>();
  result->items = a->items;
  for (const auto& [key, value] : b->items) change_item(frames, *result, key, value);
  return result;
}

/// What `left op= right` calls; null if left has no such method.
Value call_in_place(Interpreter& interpreter, Operator op, const Value& left, const Value& right) {
  if (as<Known>(left) == nullptr && as<Instance>(left) == nullptr) return nullptr;
  Value method = special_method(interpreter, left, (std::string("__i") + dunder(op)).c_str());
  if (method == nullptr) return nullptr;
  CallArguments arguments;
  arguments.positional = {right};
  Value result = call(interpreter, method, arguments);
  const auto* outcome = as<Known>(result);
  return outcome != nullptr && outcome->object.is(Py_NotImplemented) ? nullptr : result;
}

}  // namespace

Value compute_binary(Interpreter& interpreter, Operator op, const Value& given_left,
                     const Value& given_right) {
  const auto use = [&](const Value& a, const Value& b) { return binary(interpreter, op, a, b); };
  if (Value both = for_both(interpreter, given_left, given_right, use)) return both;
  const std::string method = std::string("__") + dunder(op),
                    reverse = std::string("__r") + dunder(op);
  // A tensor on the left is asked first, and takes the number.
  const bool by_tensor = as<Tensor>(given_left) != nullptr;
  const Value left = plain_number(interpreter, given_left, {method});
  const Value right = by_tensor ? plain_number(interpreter, given_right, {})
                                : plain_number(interpreter, given_right, {reverse});
  if (is_constant(left) && is_constant(right))
    return interpreter.constant(interpreter.must(
        apply_python(op, as<Known>(left)->object.get(), as<Known>(right)->object.get())));
  if (as<Tensor>(left) != nullptr || as<Tensor>(right) != nullptr)
    return tensor_binary(interpreter, op, left, right);
  if (is_number(left) && is_number(right)) return number_binary(interpreter, op, left, right);
  if (is_string(left)) return string_binary(interpreter, op, left, right);
  if (is_string(right) && op == Operator::Mult && is_number(left))
    return string_binary(interpreter, op, right, left);
  if (Value result = numpy_binary(interpreter, op, left, right)) return result;
  if (Value result = set_binary(interpreter, op, left, right)) return result;
  if (Value result = class_union(interpreter, op, left, right)) return result;
  Value a = opened(interpreter, left), b = opened(interpreter, right);
  if (Value result = dictionary_union(interpreter, op, a, b)) return result;
  const bool is_object = as<Instance>(a) != nullptr || as<Instance>(b) != nullptr;
  if (!is_object && (as<Sequence>(a) != nullptr || as<Sequence>(b) != nullptr))
    return sequence_binary(interpreter, op, a, b);
  return object_binary(interpreter, op, left, right);
}

namespace {

/// Whether `*=` does not ask the sequence on the right, where `*` does: the int on the left is of a
/// class written in Python, which could be a sequence itself.
bool is_int_that_repeats_nothing(PyTypeObject* left, PyTypeObject* right) {
  return left != nullptr && right != nullptr && PyType_IsSubtype(left, &PyLong_Type) != 0 &&
         left->tp_as_sequence != nullptr && right->tp_as_sequence != nullptr &&
         right->tp_as_sequence->sq_repeat != nullptr;
}

/// Whether `*=` calls the `__mul__` of a class derived from list, which Python asks before the
/// `__imul__` of list.
bool repeats_by_own_method(Interpreter& interpreter, const Value& left) {
  PyTypeObject* const type = class_of(left);
  if (type == &PyList_Type || !is_list_class(type)) return false;
  const auto is_lists = [&](const char* name) {
    return is_of_class_in_c(type, class_entry(interpreter, type, name), name);
  };
  return is_lists("__imul__") && !is_lists("__mul__");
}

}  // namespace

Value binary_in_place(Interpreter& interpreter, Operator op, const Value& left,
                      const Value& right) {
  const auto use = [&](const Value& a, const Value& b) {
    return binary_in_place(interpreter, op, a, b);
  };
  if (Value both = for_both(interpreter, left, right, use)) return both;
  if (as<Tensor>(left) != nullptr) {
    // `tensor @= x` and shifts make a new tensor; the others write in place.
    if (op == Operator::MatMult) return binary(interpreter, op, left, right);
    if (const Value number = number_of_numpy(interpreter, right))
      return binary_in_place(interpreter, op, left, number);
    if (as<Tensor>(right) == nullptr && !is_number(right))
      interpreter.refuse(ReasonCode::expression, "in-place operator of a tensor and an object");
    return tensor_call(interpreter, std::string(tensor_operator(op)) + "_", {left, right});
  }
  const auto* known = as<Known>(left);
  const auto* list = as<Sequence>(left);
  const bool is_list =
      list != nullptr ? list->is_list : known != nullptr && PyList_CheckExact(known->object.get());
  // A Counter has operators of its own.
  const bool is_dict = (as<Dictionary>(left) != nullptr && !is_counter(class_of(left))) ||
                       (known != nullptr && PyDict_CheckExact(known->object.get()));
  if ((is_list && op == Operator::Add) || (is_dict && op == Operator::BitOr)) {
    CallArguments arguments;
    arguments.positional = {right};
    call(interpreter, attribute(interpreter, left, is_list ? "extend" : "update"), arguments);
    return left;
  }
  if (const auto made = shared_as<Sequence>(left);
      op == Operator::Mult && made != nullptr && made->is_list && !made->type) {
    repeat_list(interpreter, made, right);
    return left;
  }
  if (op == Operator::Mult && is_int_that_repeats_nothing(class_of(left), class_of(right)))
    interpreter.refuse(ReasonCode::would_raise, "TypeError: *= of an int of another class");
  if (Value changed = set_binary_in_place(interpreter, op, left, right)) return changed;
  if (op == Operator::Mult && repeats_by_own_method(interpreter, left))
    return binary(interpreter, op, left, right);
  if (known != nullptr && !is_immutable_constant(known->object.get()) &&
      !is_enumeration(Py_TYPE(known->object.get()))) {
    if (Value changed = call_in_place(interpreter, op, left, right)) return changed;
  }
  if (as<Instance>(left) != nullptr)
    if (Value changed = call_in_place(interpreter, op, left, right)) return changed;
  return binary(interpreter, op, left, right);
}

Value unary(Interpreter& interpreter, UnaryOperator op, const Value& operand) {
  if (Value both = for_both(interpreter, operand,
                            [&](const Value& one) { return unary(interpreter, op, one); }))
    return both;
  if (op == UnaryOperator::Not) {
    if (as<Number>(operand) != nullptr) {
      Value flag = convert_number(interpreter, operand, Type::Kind::boolean);
      if (as<Known>(flag) != nullptr) return interpreter.boolean(!truth(interpreter, flag, -1));
      Object example = as<Number>(flag)->example;
      if (example) example = Object::borrow(example.is(Py_True) ? Py_False : Py_True);
      return interpreter.number(
          op::scalar_not(interpreter.builder(), {interpreter.graph_value(flag)}), example);
    }
    return interpreter.boolean(!truth(interpreter, operand, -1));
  }
  if (is_constant(operand)) {
    PyObject* object = as<Known>(operand)->object.get();
    return interpreter.constant(
        interpreter.must(op == UnaryOperator::USub   ? PyNumber_Negative(object)
                         : op == UnaryOperator::UAdd ? PyNumber_Positive(object)
                                                     : PyNumber_Invert(object)));
  }
  if (as<Tensor>(operand) != nullptr) {
    if (op == UnaryOperator::UAdd) return tensor_call(interpreter, "Tensor.positive", {operand});
    return tensor_call(interpreter, op == UnaryOperator::USub ? "Tensor.neg" : "Tensor.bitwise_not",
                       {operand});
  }
  if (const auto* number = as<Number>(operand)) {
    if (op == UnaryOperator::USub) {
      if (number->dim)
        return number_binary(interpreter, Operator::Sub, interpreter.integer(0), operand);
      Object example;
      if (number->example) example = interpreter.must(PyNumber_Negative(number->example.get()));
      return interpreter.number(
          op::scalar_neg(interpreter.builder(), {interpreter.graph_value(operand)}), example);
    }
    if (op == UnaryOperator::UAdd && number->type != Type::Kind::boolean) return operand;
    if (op == UnaryOperator::Invert && number->type == Type::Kind::i64)
      return binary(interpreter, Operator::Sub, interpreter.integer(-1), operand);
  }
  const char* name = op == UnaryOperator::USub   ? "__neg__"
                     : op == UnaryOperator::UAdd ? "__pos__"
                                                 : "__invert__";
  if (as<Known>(operand) != nullptr || as<Instance>(operand) != nullptr)
    if (Value method = special_method(interpreter, operand, name))
      return call(interpreter, method, {});
  interpreter.refuse(ReasonCode::expression, cat("the operator ", syntax::symbol(op)));
}

}  // namespace janus::frontend
