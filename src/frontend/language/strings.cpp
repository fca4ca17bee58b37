// Formatted strings: what is known is formatted now, the rest becomes a recipe that Python follows
// after the run.
#include "frontend/language/strings.h"

#include <algorithm>
#include <cctype>
#include <limits>

#include "frontend/control/journal.h"
#include "frontend/control/optional.h"
#include "frontend/core/class_entry.h"
#include "frontend/core/class_of.h"
#include "frontend/core/exceptions.h"
#include "frontend/core/nesting.h"
#include "frontend/core/object_kinds.h"
#include "frontend/core/operations.h"
#include "frontend/core/torch_objects.h"
#include "frontend/language/evaluation.h"
#include "frontend/objects/attributes.h"
#include "frontend/objects/container_classes.h"
#include "frontend/objects/default_factory.h"
#include "frontend/objects/folding.h"
#include "frontend/objects/protocol.h"
#include "frontend/tensors/callables.h"
#include "frontend/tensors/tensor.h"
#include "frontend/values/constants.h"
#include "frontend/values/make.h"
#include "frontend/values/symbolic_list.h"

namespace janus::frontend {

using graph::Type;
using python::Object;

bool is_varying_text(const Value& value) {
  const auto* object = as<RuntimeObject>(value);
  return object != nullptr && object->classes.size() == 1 &&
         object->classes[0].is(reinterpret_cast<PyObject*>(&PyUnicode_Type));
}

namespace {

/// What is nested deeper than so many levels, or holds itself, is left to Python.
constexpr int kMostLevels = 50;

bool needs_run_within(const Value& value, int levels) {
  if (levels == 0) return true;
  switch (value->kind) {
    case ValueKind::run_time:
      return is_varying_text(value);
    case ValueKind::number:
    case ValueKind::tensor:
    case ValueKind::deferred:
    case ValueKind::either:
      return true;
    case ValueKind::sequence:
      if (rolled(value) != nullptr) return true;
      for (const Value& element : as<Sequence>(value)->elements)
        if (needs_run_within(element, levels - 1)) return true;
      return false;
    case ValueKind::dictionary:
      for (const auto& [key, element] : as<Dictionary>(value)->items)
        if (needs_run_within(element, levels - 1)) return true;
      return false;
    default:
      return false;
  }
}

}  // namespace

bool needs_run(const Value& value) { return needs_run_within(value, kMostLevels); }

// --- texts that are made after the run ----------------------------------------------------------

namespace {

/// Whether the class has a function of the program that makes its objects' texts.
bool has_own_text(PyTypeObject* type) {
  static PyObject* const maker = imported("collections.namedtuple");
  return std::ranges::any_of(
      std::initializer_list<const char*>{"__str__", "__repr__", "__format__"}, [&](auto* name) {
        PyObject* const found = _PyType_Lookup(type, python::interned(name));
        return found != nullptr && PyFunction_Check(found) &&
               PyFunction_GET_GLOBALS(found) != PyFunction_GET_GLOBALS(maker);
      });
}

/// Whether an object that existed before the call has the same text as long as it lives.
bool has_lasting_text(PyObject* object) {
  if (is_immutable_constant(object) || is_torch_constant(object) || PyFunction_Check(object) ||
      PyCFunction_Check(object) || PyModule_Check(object))
    return true;
  PyTypeObject* const type = Py_TYPE(object);
  if (PyType_Check(object))  // whose text may be its metaclass's
    return !has_own_text(type) || is_enumeration(reinterpret_cast<PyTypeObject*>(object));
  if (has_own_text(type)) return false;
  if (PyLong_Check(object) || PyFloat_Check(object) || PyUnicode_Check(object)) return true;
  const bool is_named_only =
      type->tp_repr == PyBaseObject_Type.tp_repr && type->tp_str == PyBaseObject_Type.tp_str;
  // What C hashes by its contents keeps them, as a datetime does.
  const bool is_value = (type->tp_flags & Py_TPFLAGS_HEAPTYPE) == 0 && !PyTuple_Check(object) &&
                        !PyAnySet_Check(object) && type->tp_hash != nullptr &&
                        type->tp_hash != PyObject_HashNotImplemented &&
                        type->tp_hash != PyBaseObject_Type.tp_hash;
  return is_named_only || is_value;
}

/// Whether what the tensor shows after the run are the contents that its memory has by then.
bool is_read_after_run(const Interpreter& interpreter, const Tensor& tensor) {
  const Tensor* const memory = memory_of(&tensor);
  return memory->source != nullptr ||
         std::ranges::any_of(interpreter.entry_tensor_order, [&](const auto& leaf) {
           return leaf->grad_replaced && leaf->grad.get() == memory;
         });
}

/// A view of what existed before the call is copied, if its text does not name its grad_fn.
Value lasting_tensor(Interpreter& interpreter, const Value& value) {
  const auto& tensor = *as<Tensor>(value);
  if (tensor.source != nullptr) return nullptr;
  if (!is_read_after_run(interpreter, tensor)) return value;
  if (tensor.requires_grad) return nullptr;
  return call_named(interpreter, "Tensor.clone", {.positional = {value}, .keywords = {}});
}

Value lasting_sequence(Interpreter& interpreter, const Value& value) {
  const auto& sequence = *as<Sequence>(value);
  if (rolled(value) != nullptr || sequence.viewed != nullptr) return value;
  if (sequence.type && has_own_text(class_of(value))) return nullptr;
  auto copy = std::make_shared<Sequence>(sequence.is_list);
  copy->type = sequence.type;
  copy->most = sequence.most;
  for (const Value& element : sequence.elements) {
    Value kept = lasting(interpreter, element);
    if (kept == nullptr) return nullptr;
    copy->elements.push_back(std::move(kept));
  }
  return copy->elements == sequence.elements ? value : copy;
}

Value lasting_dictionary(Interpreter& interpreter, const Value& value) {
  const auto& dictionary = *as<Dictionary>(value);
  auto copy = made_dict(dictionary.type);
  copy->factory = factory_of(interpreter, value);
  bool is_same = true;
  for (const auto& [key, element] : dictionary.items) {
    if (has_own_text(Py_TYPE(key.get())) && !is_enumeration(Py_TYPE(key.get()))) return nullptr;
    Value kept = lasting(interpreter, element);
    if (kept == nullptr) return nullptr;
    is_same &= kept == element;
    copy->items.emplace_back(key, std::move(kept));
  }
  return is_same ? value : copy;
}

}  // namespace

Value lasting(Interpreter& interpreter, const Value& given) {
  const Nesting deeper(interpreter);
  const Value value = opened(interpreter, given);
  const auto is_kept = [&](const Value& part) { return lasting(interpreter, part) == part; };
  switch (value->kind) {
    case ValueKind::number:
    case ValueKind::deferred:
      return value;
    case ValueKind::run_time:
      return is_varying_text(value) ? value : nullptr;
    case ValueKind::tensor:
      return lasting_tensor(interpreter, value);
    case ValueKind::known:
      return has_lasting_text(known_object(value)) ? value : nullptr;
    case ValueKind::sequence:
      return lasting_sequence(interpreter, value);
    case ValueKind::dictionary:
      return lasting_dictionary(interpreter, value);
    case ValueKind::set:
      return std::ranges::all_of(as<SetValue>(value)->elements, is_kept) ? value : nullptr;
    case ValueKind::optional:
      return is_kept(as<Optional>(value)->value) ? value : nullptr;
    case ValueKind::either: {
      const auto& either = *as<Either>(value);
      return is_kept(either.if_true) && is_kept(either.if_false) ? value : nullptr;
    }
    default:
      return nullptr;
  }
}

namespace {

/// Numbers that stand in for those that only the run knows. A format that works for all of them
/// works for any number.
struct StandIns {
  int64_t integer;
  double real;
};

Object stand_in(Interpreter& interpreter, const Value& value, const StandIns& numbers);

Object stand_in_of_type(Type::Kind kind, const StandIns& numbers) {
  if (kind == Type::Kind::boolean) return Object::borrow(Py_True);
  return Object::steal(kind == Type::Kind::f64 ? PyFloat_FromDouble(numbers.real)
                                               : PyLong_FromLongLong(numbers.integer));
}

/// A tensor of one element without dimensions is formatted as that element, all others as objects
/// that take no format.
Object stand_in_of_tensor(Interpreter& interpreter, Tensor& tensor, const StandIns& numbers) {
  const Type& type = read(interpreter, tensor)->type;
  if (!type.shape.empty()) return Object::steal(PyList_New(0));
  if (graph::is_complex(type.dtype)) return Object::steal(PyComplex_FromDoubles(numbers.real, 1));
  return stand_in_of_type(graph::is_floating(type.dtype)   ? Type::Kind::f64
                          : graph::is_integral(type.dtype) ? Type::Kind::i64
                                                           : Type::Kind::boolean,
                          numbers);
}

Object stand_in_of_sequence(Interpreter& interpreter, const Sequence& sequence,
                            const StandIns& numbers) {
  if (sequence.type) return {};
  std::vector<Object> parts;
  for (const Value& element : sequence.elements)
    if (!parts.emplace_back(stand_in(interpreter, element, numbers))) return {};
  const auto size = static_cast<Py_ssize_t>(parts.size());
  Object made = Object::steal(sequence.is_list ? PyList_New(size) : PyTuple_New(size));
  for (Py_ssize_t i = 0; i < size; ++i) {
    PyObject* const part = parts[static_cast<size_t>(i)].release();
    if (sequence.is_list)
      PyList_SET_ITEM(made.get(), i, part);
    else
      PyTuple_SET_ITEM(made.get(), i, part);
  }
  return made;
}

/// An object of the kind that the value will be; null where that is not known.
Object stand_in(Interpreter& interpreter, const Value& value, const StandIns& numbers) {
  const Nesting deeper(interpreter);
  if (const auto* number = as<Number>(value)) return stand_in_of_type(number->type, numbers);
  if (auto* tensor = as<Tensor>(value)) return stand_in_of_tensor(interpreter, *tensor, numbers);
  if (const auto* deferred = as<Deferred>(value))
    return deferred->type.is(reinterpret_cast<PyObject*>(&PyUnicode_Type)) ? python::string("a")
                                                                           : Object{};
  if (is_varying_text(value)) return python::string("a");
  if (const auto* known = as<Known>(value))
    return has_lasting_text(known->object.get()) ? known->object : Object{};
  if (const auto* sequence = as<Sequence>(value); sequence != nullptr && rolled(value) == nullptr)
    return stand_in_of_sequence(interpreter, *sequence, numbers);
  return {};
}

/// Refuses a format that may raise. The text is made after the run: the program's handlers have
/// been left by then, and its later changes are done.
void expect_formats(Interpreter& interpreter, PyObject* callable, const CallArguments& arguments) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  constexpr double infinity = std::numeric_limits<double>::infinity();
  constexpr int64_t large = int64_t{1} << 62;
  for (const StandIns& numbers : {StandIns{1, 1.5}, StandIns{-1, nan}, StandIns{large, infinity}}) {
    auto positional = std::make_shared<Sequence>(/*is_list=*/false);
    for (const Value& argument : arguments.positional) positional->elements.push_back(argument);
    const Object given = stand_in_of_sequence(interpreter, *positional, numbers);
    if (!given) return;
    const Object named = Object::steal(PyDict_New());
    for (const auto& [name, value] : arguments.keywords) {
      const Object part = stand_in(interpreter, value, numbers);
      if (!part) return;
      PyDict_SetItemString(named.get(), name.c_str(), part.get());
    }
    if (Object::steal(PyObject_Call(callable, given.get(), named.get()))) continue;
    PyErr_Clear();
    interpreter.refuse(ReasonCode::would_raise, "a format that raises for some values");
  }
}

}  // namespace

Value defer_formatting(Interpreter& interpreter, PyObject* callable,
                       const CallArguments& arguments) {
  CallArguments kept = arguments;
  const auto keep = [&](Value& value) {
    value = lasting(interpreter, value);
    if (value == nullptr) interpreter.refuse(ReasonCode::expression, "the text of an object");
  };
  std::ranges::for_each(kept.positional, keep);
  for (auto& [name, value] : kept.keywords) keep(value);
  expect_formats(interpreter, callable, kept);
  return defer(interpreter, Object::borrow(callable), kept, &PyUnicode_Type);
}

PyObject* text_function(int conversion) {
  const char* name = conversion == 'r'   ? "builtins.repr"
                     : conversion == 's' ? "builtins.str"
                                         : "builtins.ascii";
  return imported(name);
}

Value join_texts(Interpreter& interpreter, std::vector<Value> parts) {
  if (!std::ranges::any_of(parts, needs_run)) {
    Object list = folded(interpreter, make_list(std::move(parts)));
    Object empty = interpreter.must(PyUnicode_FromString(""));
    return interpreter.constant(interpreter.must(PyUnicode_Join(empty.get(), list.get())));
  }
  CallArguments arguments;
  arguments.positional = {interpreter.string(""), make_tuple(std::move(parts))};
  static PyObject* const join = imported("builtins.str.join");
  return defer(interpreter, Object::borrow(join), arguments, &PyUnicode_Type);
}

namespace {

// --- objects ------------------------------------------------------------------------------------

/// BaseException's text, or KeyError's, which shows its only argument as it is written.
Value text_of_exception(Interpreter& interpreter, const Instance& exception, bool is_repr) {
  auto* type = reinterpret_cast<PyTypeObject*>(exception.type.get());
  const auto* base = reinterpret_cast<PyTypeObject*>(PyExc_BaseException);
  const auto* key_error = reinterpret_cast<PyTypeObject*>(PyExc_KeyError);
  const bool is_key_error = type->tp_str == key_error->tp_str;
  const Value known = arguments_of_exception(exception);
  if (known == nullptr || type->tp_repr != base->tp_repr ||
      (type->tp_str != base->tp_str && !is_key_error))
    interpreter.refuse(ReasonCode::expression, "the text of an exception");
  const std::vector<Value> arguments = elements_of(interpreter, known);
  const bool is_one = arguments.size() == 1;
  const Value& shown = is_one ? arguments[0] : known;
  if (!is_repr && arguments.empty()) return interpreter.string("");
  if (!is_repr)
    return format_value(interpreter, shown, is_one && is_key_error ? 'r' : 's', nullptr);
  const std::string path = type->tp_name;
  const std::string name = path.substr(path.rfind('.') + 1);
  const Value text = format_value(interpreter, shown, 'r', nullptr);
  return is_one ? join_texts(interpreter,
                             {interpreter.string(name + "("), text, interpreter.string(")")})
                : join_texts(interpreter, {interpreter.string(name), text});
}

/// Of exceptions, and of objects whose class says it in Python; null for all else.
Value text_of_object(Interpreter& interpreter, const Value& value, bool is_repr) {
  const bool is_own = as<Instance>(value) != nullptr || as<Known>(value) != nullptr;
  if (!is_own || (class_of(value)->tp_flags & Py_TPFLAGS_HEAPTYPE) == 0)
    return is_exception(value) ? text_of_exception(interpreter, *as<Instance>(value), is_repr)
                               : nullptr;
  const bool has_own = class_of(value)->tp_str != PyBaseObject_Type.tp_str;
  if (!has_own) assume_entries(interpreter, class_of(value), {"__str__"});
  Value method = written_method(interpreter, value, is_repr || !has_own ? "__repr__" : "__str__");
  if (method == nullptr)
    return is_exception(value) ? text_of_exception(interpreter, *as<Instance>(value), is_repr)
                               : nullptr;
  return called_text(interpreter, method, {});
}

/// The value, or one with the same text that no later write changes; null if formatting it would
/// run code of the program, or show such a write.
Value formattable(Interpreter& interpreter, const Value& value) {
  if (needs_run(value)) return lasting(interpreter, value);
  const auto* sequence = as<Sequence>(value);
  if (sequence != nullptr && sequence->type && has_own_text(class_of(value))) return nullptr;
  const auto* known = as<Known>(value);
  const bool is_plain = known == nullptr || is_immutable_constant(known->object.get()) ||
                        is_torch_constant(known->object.get()) || PyType_Check(known->object.get());
  return is_plain ? value : nullptr;
}

/// What format() shows of the value: of a tensor without dimensions only its number, and so
/// nothing of its gradient.
Value formatted_part(Interpreter& interpreter, const Value& value, int conversion) {
  auto* tensor = as<Tensor>(value);
  if (conversion >= 0 || tensor == nullptr || tensor->source != nullptr || !tensor->requires_grad ||
      !is_read_after_run(interpreter, *tensor) || !read(interpreter, *tensor)->type.shape.empty())
    return value;
  return call_named(interpreter, "Tensor.detach", {.positional = {value}, .keywords = {}});
}

bool is_empty_text(const Value& value) {
  PyObject* const object = known_object(value);
  return object != nullptr && PyUnicode_Check(object) && PyUnicode_GET_LENGTH(object) == 0;
}

/// `__format__` of an object, where its class says it in Python.
Value own_format(Interpreter& interpreter, const Value& value) {
  const bool is_own = as<Instance>(value) != nullptr || as<Known>(value) != nullptr;
  if (!is_own || (class_of(value)->tp_flags & Py_TPFLAGS_HEAPTYPE) == 0) return nullptr;
  return written_method(interpreter, value, "__format__");
}

/// The text of an object of which no function of the program says it: after the run.
Value deferred_text(Interpreter& interpreter, Value value, int conversion, const Value& spec) {
  if (conversion >= 0)
    value = defer_formatting(interpreter, text_function(conversion),
                             {.positional = {value}, .keywords = {}});
  static PyObject* const format = imported("builtins.format");
  const Value how = spec != nullptr ? spec : interpreter.string("");
  return defer_formatting(interpreter, format, {.positional = {value, how}, .keywords = {}});
}

Value converted(Interpreter& interpreter, const Value& value, int conversion) {
  if (conversion < 0) return value;
  PyObject* const function = text_function(conversion);
  if (needs_run(value)) {
    CallArguments arguments;
    arguments.positional = {value};
    return defer(interpreter, Object::borrow(function), arguments, &PyUnicode_Type);
  }
  return interpreter.constant(
      interpreter.must(PyObject_CallOneArg(function, folded(interpreter, value).get())));
}

}  // namespace

Value format_value(Interpreter& interpreter, const Value& value, int conversion,
                   const Value& spec) {
  if (Value both = for_both(interpreter, value, [&](const Value& one) {
        return format_value(interpreter, one, conversion, spec);
      }))
    return both;
  const bool has_spec = spec != nullptr && !is_empty_text(spec);
  const Value kept = formattable(interpreter, formatted_part(interpreter, value, conversion));
  const bool is_object = as<Instance>(value) != nullptr || kept == nullptr;
  if (is_object && (conversion >= 0 || !has_spec)) {
    const Value format_method = conversion < 0 ? own_format(interpreter, value) : nullptr;
    if (format_method != nullptr) {
      const Value empty = interpreter.string("");
      return called_text(interpreter, format_method, {.positional = {empty}, .keywords = {}});
    }
    if (const Value text = text_of_object(interpreter, value, conversion == 'r'))
      return format_value(interpreter, text, -1, spec);
  }
  if (kept == nullptr) return deferred_text(interpreter, value, conversion, spec);
  Value shown = converted(interpreter, kept, conversion);
  Value format = spec != nullptr ? spec : interpreter.string("");
  if (!needs_run(shown) && !needs_run(format))
    return interpreter.constant(interpreter.must(
        PyObject_Format(folded(interpreter, shown).get(), folded(interpreter, format).get())));
  CallArguments arguments;
  arguments.positional = {shown, format};
  static PyObject* const function = imported("builtins.format");
  return defer_formatting(interpreter, function, arguments);
}

Value join_formatted(Interpreter& interpreter, const syntax::JoinedStr& string) {
  std::vector<Value> parts;
  for (const syntax::Expression* part : string.values)
    parts.push_back(evaluate(interpreter, *part));
  return join_texts(interpreter, std::move(parts));
}

Value shown_text(Interpreter& interpreter, const Value& value) {
  return text_of_object(interpreter, value, /*is_repr=*/false);
}

namespace {

/// The letters of the conversions in a format; nothing where one takes a key or a width.
std::optional<std::string> conversions_of(const std::string& format) {
  std::string letters;
  for (size_t i = format.find('%'); i != std::string::npos; i = format.find('%', i + 1)) {
    i = format.find_first_not_of("#0- +.123456789hlL", i + 1);
    if (i == std::string::npos || format[i] == '(' || format[i] == '*') return std::nullopt;
    if (format[i] != '%') letters += format[i];
  }
  return letters;
}

}  // namespace

Value format_by_percent(Interpreter& interpreter, const Value& format, const Value& given) {
  const auto* tuple = as<Sequence>(given);
  const bool is_tuple = tuple != nullptr && !tuple->is_list && rolled(given) == nullptr;
  std::vector<Value> shown = is_tuple ? tuple->elements.known() : std::vector<Value>{given};
  if (const auto* text = as<Known>(format); text != nullptr)
    if (const auto letters = conversions_of(text_of(text->object.get())))
      for (size_t i = 0; i < shown.size() && i < letters->size(); ++i) {
        const bool is_object = as<Known>(shown[i]) != nullptr || as<Instance>(shown[i]) != nullptr;
        if ((*letters)[i] != 's' || !is_object || lasting(interpreter, shown[i]) != nullptr)
          continue;
        if (Value own = shown_text(interpreter, shown[i])) shown[i] = std::move(own);
      }
  static PyObject* const mod = imported("operator.mod");
  const Value values = is_tuple ? make_tuple(std::move(shown)) : shown[0];
  return defer_formatting(interpreter, mod, {.positional = {format, values}, .keywords = {}});
}

}  // namespace janus::frontend
