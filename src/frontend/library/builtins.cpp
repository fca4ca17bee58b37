// Python's builtin functions and classes, by identity. Containers and iterators are in
// builtin_containers.cpp.
#include "frontend/library/builtins.h"

#include <algorithm>

#include "frontend/control/branches.h"
#include "frontend/control/entry_lists.h"
#include "frontend/control/journal.h"
#include "frontend/control/list_order.h"
#include "frontend/control/list_reductions.h"
#include "frontend/control/outcomes.h"
#include "frontend/control/python_sum.h"
#include "frontend/control/selected_number.h"
#include "frontend/control/symbolic_lists.h"
#include "frontend/core/class_entry.h"
#include "frontend/core/class_of.h"
#include "frontend/core/communication.h"
#include "frontend/core/exceptions.h"
#include "frontend/core/identity_numbers.h"
#include "frontend/core/known_callables.h"
#include "frontend/core/operations.h"
#include "frontend/core/run_time_objects.h"
#include "frontend/core/torch_objects.h"
#include "frontend/language/conditions.h"
#include "frontend/language/numbers.h"
#include "frontend/language/numpy_numbers.h"
#include "frontend/language/python_calls.h"
#include "frontend/language/strings.h"
#include "frontend/library/special_callables.h"
#include "frontend/objects/attributes.h"
#include "frontend/objects/class_checks.h"
#include "frontend/objects/folding.h"
#include "frontend/objects/instances.h"
#include "frontend/objects/iteration.h"
#include "frontend/objects/lengths.h"
#include "frontend/objects/run_time_attributes.h"
#include "frontend/tensors/callables.h"
#include "frontend/tensors/tensor.h"
#include "frontend/values/constants.h"
#include "frontend/values/make.h"
#include "frontend/values/number_kinds.h"
#include "frontend/values/operands.h"
#include "frontend/values/restart.h"
#include "frontend/values/symbolic_list.h"
#include "frontend/values/truth.h"
#include "ops/list.h"
#include "python/version.h"

namespace janus::frontend {

using graph::Type;
using python::Object;
using syntax::CompareOperator;
using syntax::Operator;

using Arguments = CallArguments;

void refuse_arguments(const Frames& frames, const char* function) {
  frames.refuse(ReasonCode::unsupported_argument, cat("arguments of ", function, "()"));
}

void expect(const Frames& frames, const CallArguments& arguments, size_t least, size_t most,
            const char* function) {
  size_t count = arguments.positional.size();
  if (count < least || count > most || !arguments.keywords.empty())
    refuse_arguments(frames, function);
}

Value by_own_method(Interpreter& interpreter, const CallArguments& arguments, const char* name) {
  if (arguments.positional.empty() || !arguments.keywords.empty()) return nullptr;
  const Value& object = arguments.positional[0];
  const bool is_object = as<Instance>(object) != nullptr || as<Known>(object) != nullptr;
  if (!is_object || (class_of(object)->tp_flags & Py_TPFLAGS_HEAPTYPE) == 0) return nullptr;
  const Value method = written_method(interpreter, object, name);
  if (method == nullptr) return nullptr;
  Arguments rest = arguments;
  rest.positional.erase(rest.positional.begin());
  return call(interpreter, method, rest);
}

// --- sizes and numbers --------------------------------------------------------------------------

namespace {

Value call_len(Interpreter& interpreter, const Arguments& arguments) {
  expect(interpreter, arguments, 1, 1, "len");
  return length_of(interpreter, arguments.positional[0]);
}

Value call_class_now(Interpreter& interpreter, PyTypeObject* type, const Arguments& arguments) {
  Object positional = interpreter.must(PyTuple_New(Py_ssize_t(arguments.positional.size())));
  for (size_t i = 0; i < arguments.positional.size(); ++i) {
    Object argument = folded(interpreter, arguments.positional[i]);
    if (!is_immutable_constant(argument.get())) refuse_arguments(interpreter, type->tp_name);
    PyTuple_SET_ITEM(positional.get(), Py_ssize_t(i), argument.release());
  }
  return interpreter.constant(interpreter.must(
      PyObject_Call(reinterpret_cast<PyObject*>(type), positional.get(), nullptr)));
}

Value number_class(Interpreter& interpreter, const Arguments& arguments, Type::Kind kind,
                   PyTypeObject* type) {
  if (!arguments.keywords.empty()) refuse_arguments(interpreter, type->tp_name);
  if (arguments.positional.size() != 1) return call_class_now(interpreter, type, arguments);
  const Value& value = arguments.positional[0];
  if (auto* tensor = as<Tensor>(value))
    return number_class(interpreter, {{item(interpreter, *tensor)}, {}}, kind, type);
  if (const Value number = number_of_numpy(interpreter, value))
    return number_class(interpreter, {{number}, {}}, kind, type);
  if (as<Number>(value) != nullptr) {
    if (kind == Type::Kind::i64 && as<Number>(value)->type == Type::Kind::boolean)
      return convert_number(interpreter, value, kind);
    return convert_number(interpreter, value, kind);
  }
  return call_class_now(interpreter, type, arguments);
}

Value call_int(Interpreter& interpreter, const Arguments& arguments) {
  return number_class(interpreter, arguments, Type::Kind::i64, &PyLong_Type);
}
Value call_float(Interpreter& interpreter, const Arguments& arguments) {
  return number_class(interpreter, arguments, Type::Kind::f64, &PyFloat_Type);
}
Value call_bool(Interpreter& interpreter, const Arguments& arguments) {
  expect(interpreter, arguments, 0, 1, "bool");
  if (arguments.positional.empty()) return interpreter.boolean(false);
  const Value& value = arguments.positional[0];
  if (auto* tensor = as<Tensor>(value)) {
    Value number = item(interpreter, *tensor);
    return as<Number>(number) != nullptr ? convert_number(interpreter, number, Type::Kind::boolean)
                                         : number;
  }
  if (as<Number>(value) != nullptr) return convert_number(interpreter, value, Type::Kind::boolean);
  return interpreter.boolean(truth(interpreter, value, -1));
}

Value call_abs(Interpreter& interpreter, const Arguments& arguments) {
  expect(interpreter, arguments, 1, 1, "abs");
  const Value& value = arguments.positional[0];
  if (Value result = by_own_method(interpreter, arguments, "__abs__")) return result;
  if (as<Tensor>(value) != nullptr) return call_named(interpreter, "Tensor.abs", arguments);
  if (const auto* number = as<Number>(value)) {
    Object example;
    if (number->example) example = interpreter.must(PyNumber_Absolute(number->example.get()));
    return interpreter.number(
        op::scalar_abs(interpreter.builder(), {interpreter.graph_value(value)}), example);
  }
  return interpreter.constant(
      interpreter.must(PyNumber_Absolute(folded(interpreter, value).get())));
}

/// Whether the value is an int or bool: known, or of the graph.
bool is_whole(const Value& value) {
  const auto* number = as<Number>(value);
  if (number != nullptr) return number->type != Type::Kind::f64;
  PyObject* const known = known_object(value);
  return known != nullptr && PyLong_Check(known);
}

/// round(x) and round(x, digits), of a number or of digits that only the run knows.
Value round_number(Interpreter& interpreter, Arguments arguments) {
  const Value* const given = arguments.given(1, "ndigits");
  const Value digits = given != nullptr && !is_none(*given) ? *given : nullptr;
  const Value rounded = arguments.positional.empty() ? nullptr : arguments.positional[0];
  const auto* number = rounded == nullptr ? nullptr : as<Number>(rounded);
  PyObject* const known = rounded == nullptr ? nullptr : known_object(rounded);
  const bool is_known = known != nullptr && (PyLong_CheckExact(known) || PyFloat_CheckExact(known));
  if ((number == nullptr && !is_known) || (digits != nullptr && !is_whole(digits)) ||
      arguments.positional.size() + arguments.keywords.size() != (given != nullptr ? 2 : 1))
    interpreter.refuse(ReasonCode::expression, "round()");
  arguments = {.positional = {rounded}, .keywords = {}};
  if (digits != nullptr) arguments.positional.push_back(digits);
  const bool is_float = number != nullptr ? number->type == Type::Kind::f64 : PyFloat_Check(known);
  if (number == nullptr)
    return defer(interpreter, Object::borrow(imported("builtins.round")), arguments,
                 is_float ? &PyFloat_Type : &PyLong_Type);
  return call_python(interpreter, "builtins.round", arguments,
                     digits != nullptr && is_float ? Type::Kind::f64 : Type::Kind::i64);
}

Value call_round(Interpreter& interpreter, const Arguments& arguments) {
  if (Value result = by_own_method(interpreter, arguments, "__round__")) return result;
  if (std::ranges::any_of(arguments.positional, needs_run) ||
      std::ranges::any_of(arguments.keywords,
                          [](const auto& each) { return needs_run(each.second); }))
    return round_number(interpreter, arguments);
  if (!arguments.keywords.empty()) refuse_arguments(interpreter, "round");
  Object list = folded(interpreter, make_tuple(arguments.positional));
  return interpreter.constant(
      interpreter.must(PyObject_Call(imported("builtins.round"), list.get(), nullptr)));
}

Value call_pow(Interpreter& interpreter, const Arguments& arguments) {
  expect(interpreter, arguments, 2, 2, "pow");
  return binary(interpreter, Operator::Pow, arguments.positional[0], arguments.positional[1]);
}

Value call_divmod(Interpreter& interpreter, const Arguments& arguments) {
  expect(interpreter, arguments, 2, 2, "divmod");
  for (const Value& value : arguments.positional)
    if (!is_number(value)) interpreter.refuse(ReasonCode::expression, "divmod() of objects");
  Value quotient =
      binary(interpreter, Operator::FloorDiv, arguments.positional[0], arguments.positional[1]);
  return make_tuple({quotient, binary(interpreter, Operator::Mod, arguments.positional[0],
                                      arguments.positional[1])});
}

/// min and max of a list of numbers of the graph; null: it is another call.
Value extreme_of_list(Interpreter& interpreter, const Arguments& arguments,
                      CompareOperator better) {
  const Value* key = arguments.keyword("key");
  if (arguments.positional.size() != 1 || arguments.keywords.size() != (key != nullptr ? 1 : 0))
    return nullptr;
  const Value given = opened_if_varying(interpreter, arguments.positional[0]);
  const Rolled* list = rolled(given);
  if (list == nullptr || list->form.kind != ElementForm::Kind::number) return nullptr;
  const auto keyed = [&](const Value& element) {
    return make_tuple({element, key_of(interpreter, key == nullptr ? nullptr : *key, element)});
  };
  const auto part = [](const Value& pair, size_t index) {
    return as<Sequence>(pair)->elements.known()[index];
  };
  const Value best = accumulated_from_first(
      interpreter, *list, [&](const Value& first) { return keyed(first); },
      [&](const Value& best, const Value& element) -> Value {
        const Value candidate = keyed(element);
        const Value is_better = compare(interpreter, better, part(candidate, 1), part(best, 1));
        std::vector<Value> parts;
        for (const size_t i : {0, 1})
          parts.push_back(selected(interpreter, is_better, part(candidate, i), part(best, i)));
        if (parts[0] == nullptr || parts[1] == nullptr)
          throw CannotMerge{list->test, "elements are compared by other things than numbers"};
        return make_tuple(std::move(parts));
      });
  return best == nullptr ? nullptr : part(best, 0);
}

/// min and max of several arguments or of one iterable.
Value extreme(Interpreter& interpreter, const Arguments& arguments, CompareOperator better,
              const char* name) {
  const Value* key = arguments.keyword("key");
  const Value* otherwise = arguments.keyword("default");
  size_t known_keywords = (key != nullptr ? 1 : 0) + (otherwise != nullptr ? 1 : 0);
  const bool has_useless_default = otherwise != nullptr && arguments.positional.size() != 1;
  if (arguments.positional.empty() || arguments.keywords.size() != known_keywords ||
      has_useless_default)
    refuse_arguments(interpreter, name);
  if (Value best = extreme_of_list(interpreter, arguments, better)) return best;
  Value best, best_key;
  const auto consider = [&](const Value& value) {
    Value candidate = key_of(interpreter, key == nullptr ? nullptr : *key, value);
    if (best != nullptr) {
      Value is_better = compare(interpreter, better, candidate, best_key);
      if (Value either = selected(interpreter, is_better, value, best)) {
        best = either;
        best_key = key == nullptr ? best : selected(interpreter, is_better, candidate, best_key);
        if (best_key != nullptr) return;
        interpreter.refuse(ReasonCode::dynamic_control, cat(name, " by keys of different kinds"));
      }
      if (!truth(interpreter, is_better, -1)) return;
    }
    best = value;
    best_key = std::move(candidate);
  };
  if (arguments.positional.size() == 1)
    for_each_element(interpreter, arguments.positional[0], consider);
  else
    std::ranges::for_each(arguments.positional, consider);
  if (best != nullptr) return best;
  if (otherwise != nullptr) return *otherwise;
  raise(interpreter, PyExc_ValueError, "ValueError: an empty iterable");
}

Value call_min(Interpreter& interpreter, const Arguments& arguments) {
  return extreme(interpreter, arguments, CompareOperator::Lt, "min");
}
Value call_max(Interpreter& interpreter, const Arguments& arguments) {
  return extreme(interpreter, arguments, CompareOperator::Gt, "max");
}

Value call_sum(Interpreter& interpreter, const Arguments& arguments) {
  const Value* start =
      arguments.positional.size() > 1 ? &arguments.positional[1] : arguments.keyword("start");
  if (arguments.positional.empty()) refuse_arguments(interpreter, "sum");
  const Value begin = start != nullptr ? *start : interpreter.integer(0);
  if (class_of(begin) == &PyUnicode_Type || class_of(begin) == &PyBytes_Type)
    interpreter.refuse(ReasonCode::would_raise, "TypeError: sum() of texts");
  const Value given = opened_if_varying(interpreter, arguments.positional[0]);
  if (const Rolled* list = rolled(given))
    if (Value result = sum(interpreter, *list, begin)) return result;
  std::shared_ptr<Iterator> iterator = iterate(interpreter, arguments.positional[0]);
  PythonSum total(interpreter, begin);
  const auto is_lossy = [](const Value& value) {
    return python::kCompensatesComplexSums && class_of(value) == &PyComplex_Type;
  };
  const bool begins_lossy = is_lossy(begin);
  int64_t count = 0;
  while (Value element = iterator->next()) {
    if (begins_lossy || is_lossy(element)) refuse_arguments(interpreter, "sum");
    total.add(element);
    if (++count > Interpreter::most_rounds())
      interpreter.refuse(ReasonCode::limit, "sum() of too many elements");
  }
  return total.value();
}

// --- classes of objects -------------------------------------------------------------------------

Value call_isinstance(Interpreter& interpreter, const Arguments& arguments) {
  expect(interpreter, arguments, 2, 2, "isinstance");
  const Value& value = arguments.positional[0];
  std::vector<Value> classes;
  collect_classes(interpreter, arguments.positional[1], classes);
  if (const auto* object = as<RuntimeObject>(value)) {
    auto holds = [&](PyTypeObject* type) {
      return std::any_of(classes.begin(), classes.end(), [&](const Value& candidate) {
        return has_instances_of(interpreter, type, known_object(candidate), nullptr);
      });
    };
    return test_classes(interpreter, *object, holds, -1);
  }
  PyTypeObject* type = class_of(value);
  if (type == nullptr) interpreter.refuse(ReasonCode::expression, "isinstance()");
  expect_own_class(interpreter, type);
  PyObject* instance = nullptr;
  if (const auto* known = as<Known>(value)) instance = known->object.get();
  if (const auto* tensor = as<Tensor>(value)) instance = tensor->object.get();
  static PyObject* const parameter = imported("torch.nn.Parameter");
  static PyObject* const buffer = imported("torch.nn.Buffer");
  for (const Value& candidate : classes) {
    PyObject* const of = known_object(candidate);
    if (as<Tensor>(value) != nullptr && (of == parameter || (buffer != nullptr && of == buffer))) {
      if (of == parameter && as<Tensor>(value)->is_parameter) return interpreter.boolean(true);
      continue;
    }
    if (of != reinterpret_cast<PyObject*>(type))
      if (const Value answer =
              asked_metaclass(interpreter, candidate, "__instancecheck__", value)) {
        if (truth(interpreter, answer, -1)) return interpreter.boolean(true);
        continue;
      }
    if (has_instances_of(interpreter, type, of, instance)) return interpreter.boolean(true);
  }
  return interpreter.boolean(false);
}

Value call_issubclass(Interpreter& interpreter, const Arguments& arguments) {
  expect(interpreter, arguments, 2, 2, "issubclass");
  const auto* type = as<Known>(arguments.positional[0]);
  if (type == nullptr || !PyType_Check(type->object.get()))
    interpreter.refuse(ReasonCode::expression, "issubclass()");
  interpreter.assume_identity(*type);
  std::vector<Value> classes;
  collect_classes(interpreter, arguments.positional[1], classes);
  for (const Value& candidate : classes) {
    const Value answer =
        asked_metaclass(interpreter, candidate, "__subclasscheck__", arguments.positional[0]);
    const bool is_one =
        answer != nullptr
            ? truth(interpreter, answer, -1)
            : is_subclass(interpreter, reinterpret_cast<PyTypeObject*>(type->object.get()),
                          known_object(candidate));
    if (is_one) return interpreter.boolean(true);
  }
  return interpreter.boolean(false);
}

Value call_type(Interpreter& interpreter, const Arguments& arguments) {
  expect(interpreter, arguments, 1, 1, "type");
  return type_of(interpreter, arguments.positional[0]);
}

Value call_callable(Interpreter& interpreter, const Arguments& arguments) {
  expect(interpreter, arguments, 1, 1, "callable");
  PyTypeObject* type = class_of(arguments.positional[0]);
  if (as<Native>(arguments.positional[0]) != nullptr) return interpreter.boolean(true);
  if (type == nullptr) interpreter.refuse(ReasonCode::expression, "callable()");
  assume_entries(interpreter, type, {"__call__"});
  return interpreter.boolean(type->tp_call != nullptr);
}

std::string attribute_name(const Frames& frames, const Value& value) {
  const auto* known = as<Known>(value);
  std::string name = known == nullptr ? std::string() : text_of(known->object.get());
  if (name.empty()) frames.refuse(ReasonCode::dynamic_value, "the name of an attribute");
  return name;
}

/// Null: there is none, or `__getattr__` raises AttributeError.
Value attribute_unless_raised(Interpreter& interpreter, const Value& object,
                              const std::string& name) {
  return value_unless_raised(interpreter, PyExc_AttributeError,
                             [&] { return attribute_or_null(interpreter, object, name); });
}

Value call_getattr(Interpreter& interpreter, const Arguments& arguments) {
  expect(interpreter, arguments, 2, 3, "getattr");
  std::string name = attribute_name(interpreter, arguments.positional[1]);
  const auto met = shared_as<RuntimeObject>(arguments.positional[0]);
  if (met != nullptr && arguments.positional.size() == 2)
    if (Value found = run_time_attribute(interpreter, met, name, -1)) return found;
  if (arguments.positional.size() == 2)
    return attribute(interpreter, arguments.positional[0], name);
  if (met != nullptr) {
    const Truth truth{.known = std::nullopt,
                      .flag = run_time_has_attribute(interpreter, *met, name),
                      .example = {}};
    return choose(
        interpreter, truth, -1, [&] { return run_time_attribute(interpreter, met, name, -1); },
        [&] { return arguments.positional[2]; });
  }
  Value value = attribute_unless_raised(interpreter, arguments.positional[0], name);
  return value != nullptr ? value : arguments.positional[2];
}

Value call_hasattr(Interpreter& interpreter, const Arguments& arguments) {
  expect(interpreter, arguments, 2, 2, "hasattr");
  std::string name = attribute_name(interpreter, arguments.positional[1]);
  if (const auto* met = as<RuntimeObject>(arguments.positional[0]))
    return interpreter.number(run_time_has_attribute(interpreter, *met, name));
  return interpreter.boolean(attribute_unless_raised(interpreter, arguments.positional[0], name) !=
                             nullptr);
}

Value call_setattr(Interpreter& interpreter, const Arguments& arguments) {
  expect(interpreter, arguments, 3, 3, "setattr");
  write_attribute(interpreter, arguments.positional[0],
                  attribute_name(interpreter, arguments.positional[1]), arguments.positional[2]);
  return interpreter.none();
}

Value call_delattr(Interpreter& interpreter, const Arguments& arguments) {
  expect(interpreter, arguments, 2, 2, "delattr");
  delete_attribute(interpreter, arguments.positional[0],
                   attribute_name(interpreter, arguments.positional[1]));
  return interpreter.none();
}

/// Where a chain of super().__init__() ends: it does nothing with an object that the run made.
Value call_object_init(Interpreter& interpreter, const CallArguments& arguments) {
  const bool is_plain = arguments.positional.size() == 1 && arguments.keywords.empty() &&
                        as<Instance>(arguments.positional[0]) != nullptr;
  return is_plain ? interpreter.none() : nullptr;
}

Value call_object_getattribute(Interpreter& interpreter, const Arguments& arguments) {
  expect(interpreter, arguments, 2, 2, "object.__getattribute__");
  return own_attribute(interpreter, arguments.positional[0],
                       attribute_name(interpreter, arguments.positional[1]));
}

Value call_object_setattr(Interpreter& interpreter, const Arguments& arguments) {
  expect(interpreter, arguments, 3, 3, "object.__setattr__");
  write_own_attribute(interpreter, arguments.positional[0],
                      attribute_name(interpreter, arguments.positional[1]),
                      arguments.positional[2]);
  return interpreter.none();
}

Value call_object_delattr(Interpreter& interpreter, const Arguments& arguments) {
  expect(interpreter, arguments, 2, 2, "object.__delattr__");
  write_own_attribute(interpreter, arguments.positional[0],
                      attribute_name(interpreter, arguments.positional[1]), nullptr);
  return interpreter.none();
}

Value call_super(Interpreter& interpreter, const Arguments& arguments) {
  if (arguments.positional.size() == 2)
    return std::make_shared<Super>(arguments.positional[0], arguments.positional[1]);
  expect(interpreter, arguments, 0, 0, "super");
  // super() means super(__class__, <first argument>).
  Frame& frame = interpreter.frame();
  if (frame.arguments.empty()) interpreter.refuse(ReasonCode::expression, "super()");
  return std::make_shared<Super>(interpreter.read_name("__class__"), frame.arguments[0]);
}

Value call_id(Interpreter& interpreter, const Arguments& arguments) {
  expect(interpreter, arguments, 1, 1, "id");
  const Object number = identity_number(interpreter, arguments.positional[0]);
  if (!number) interpreter.refuse(ReasonCode::expression, "id()");
  return interpreter.constant(number);
}

/// locals() of a function: a dict of its variables, in CPython's order. A second call would change
/// the dict that the first one gave. That there was one is noted as a variable with a name that no
/// program has: variables are what sides of branches and iterations of loops restore and compare.
Value call_locals(Interpreter& interpreter, const Arguments& arguments) {
  expect(interpreter, arguments, 0, 0, "locals");
  constexpr const char* kTaken = ".locals";
  const Frame& frame = interpreter.frame();
  const Code& code = *frame.code;
  Variables& variables = *frame.variables;
  if (!code.function || variables.scope != code.tree->scope || code.tree->scope->has_yield ||
      variables.values.contains(kTaken))
    interpreter.refuse(ReasonCode::expression, "locals()");
  const auto dict = std::make_shared<Dictionary>();
  PyObject* const of = PyFunction_GET_CODE(code.function.get());
  for (const char* kind : {"co_varnames", "co_cellvars", "co_freevars"}) {
    const Object names = interpreter.must(PyObject_GetAttrString(of, kind));
    for (const Object& name : python::elements(names.get())) {
      const std::string text = text_of(name.get());
      const bool is_free = std::string_view(kind) == "co_freevars";
      const auto variable = variables.values.find(text);
      if (!is_free && (variable == variables.values.end() || variable->second == nullptr)) continue;
      const bool is_there = std::ranges::any_of(
          dict->items, [&](const auto& item) { return text_of(item.first.get()) == text; });
      if (!is_there) dict->items.emplace_back(name, interpreter.read_name(text));
    }
  }
  variables.values[kTaken] = interpreter.none();
  return dict;
}

// --- text ---------------------------------------------------------------------------------------

Value call_str(Interpreter& interpreter, const Arguments& arguments) {
  expect(interpreter, arguments, 0, 1, "str");
  if (arguments.positional.empty()) return interpreter.string("");
  return format_value(interpreter, arguments.positional[0], 's', nullptr);
}

Value call_repr(Interpreter& interpreter, const Arguments& arguments) {
  expect(interpreter, arguments, 1, 1, "repr");
  return format_value(interpreter, arguments.positional[0], 'r', nullptr);
}

Value call_format(Interpreter& interpreter, const Arguments& arguments) {
  expect(interpreter, arguments, 1, 2, "format");
  return format_value(interpreter, arguments.positional[0], -1,
                      arguments.positional.size() > 1 ? arguments.positional[1] : nullptr);
}

}  // namespace

std::span<const SpecialCallable> builtin_callables() {
  static constexpr SpecialCallable table[] = {
      {"builtins.len", call_len},
      {"builtins.int", call_int},
      {"builtins.float", call_float},
      {"builtins.bool", call_bool},
      {"builtins.abs", call_abs},
      {"builtins.round", call_round},
      {"builtins.pow", call_pow},
      {"builtins.divmod", call_divmod},
      {"builtins.min", call_min},
      {"builtins.max", call_max},
      {"builtins.sum", call_sum},
      {"builtins.isinstance", call_isinstance},
      {"builtins.issubclass", call_issubclass},
      {"builtins.type", call_type},
      {"builtins.callable", call_callable},
      {"builtins.getattr", call_getattr},
      {"builtins.hasattr", call_hasattr},
      {"builtins.setattr", call_setattr},
      {"builtins.delattr", call_delattr},
      {"builtins.object.__init__", call_object_init},
      {"builtins.object.__new__", call_object_new},
      {"builtins.dict.__new__", call_dict_new},
      {"builtins.list.__new__", call_list_new},
      {"builtins.object.__getattribute__", call_object_getattribute},
      {"builtins.object.__setattr__", call_object_setattr},
      {"builtins.object.__delattr__", call_object_delattr},
      {"builtins.super", call_super},
      {"builtins.id", call_id},
      {"builtins.locals", call_locals},
      {"builtins.str", call_str},
      {"builtins.repr", call_repr},
      {"builtins.format", call_format},
  };
  return table;
}

}  // namespace janus::frontend
