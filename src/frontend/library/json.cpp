// json: known texts are read, and known values written, when the graph is made. The text of values
// that only the run knows is made after it.
#include <algorithm>
#include <array>
#include <optional>

#include "frontend/control/journal.h"
#include "frontend/core/known_callables.h"
#include "frontend/core/operations.h"
#include "frontend/core/torch_objects.h"
#include "frontend/library/special_callables.h"
#include "frontend/objects/folding.h"
#include "frontend/values/constants.h"
#include "frontend/values/make.h"
#include "frontend/values/operands.h"

namespace janus::frontend {

using python::Object;

namespace {

/// What a text of JSON was read as: containers are made by the run.
Value made_of(Interpreter& interpreter, PyObject* read) {
  if (PyList_CheckExact(read)) {
    std::vector<Value> elements;
    for (const Object& element : python::elements(read))
      elements.push_back(made_of(interpreter, element.get()));
    return make_list(std::move(elements));
  }
  if (!PyDict_CheckExact(read)) return interpreter.constant_borrowed(read);
  auto dict = made_dict({});
  PyObject *key = nullptr, *value = nullptr;
  for (Py_ssize_t at = 0; PyDict_Next(read, &at, &key, &value);)
    dict->items.emplace_back(Object::borrow(key), made_of(interpreter, value));
  return dict;
}

/// Whether the scanner makes numbers and containers as Python does, and calls nothing of the
/// program's.
bool is_plain_scanner(PyObject* scanner) {
  static PyObject* const constants = imported("json.decoder._CONSTANTS.__getitem__");
  const auto holds = [&](const char* name, PyObject* expected) {
    const Object held = python::attribute(scanner, name);
    return python::equal(held.get(), expected);
  };
  return holds("object_hook", Py_None) && holds("object_pairs_hook", Py_None) &&
         holds("parse_float", reinterpret_cast<PyObject*>(&PyFloat_Type)) &&
         holds("parse_int", reinterpret_cast<PyObject*>(&PyLong_Type)) &&
         holds("parse_constant", constants);
}

/// scanner(text, place) gives what stands there, and where it ends.
Value call_scanner(Interpreter& interpreter, const CallArguments& arguments) {
  const auto& given = arguments.positional;
  if (given.size() != 3 || !arguments.keywords.empty()) return nullptr;
  const auto* scanner = as<Known>(given[0]);
  PyObject* const text = known_object(given[1]);
  if (scanner == nullptr || !is_plain_scanner(scanner->object.get()) || text == nullptr ||
      !PyUnicode_CheckExact(text) || known_object(given[2]) == nullptr)
    return nullptr;
  interpreter.assume_identity(*scanner);
  const Object place = folded(interpreter, given[2]);
  const Object read = interpreter.must(PyObject_CallFunctionObjArgs(
      scanner->object.get(), folded(interpreter, given[1]).get(), place.get(), nullptr));
  return make_tuple({made_of(interpreter, PyTuple_GET_ITEM(read.get(), 0)),
                     interpreter.constant_borrowed(PyTuple_GET_ITEM(read.get(), 1))});
}

/// A value as json.dumps finds it, and something that it writes in the same way where only the run
/// knows the value.
struct Written {
  Value value;  ///< containers are copied: the program may change them later
  Object example;
};

/// Walks what json.dumps is given. Nothing: it would ask the program, or another class, how a value
/// is written.
class Writing {
 public:
  explicit Writing(Interpreter& interpreter) : interpreter_(interpreter) {}

  std::optional<Written> of(const Value& given, int depth = 0) {
    constexpr int deepest = 100;  // a list may contain itself
    const Value value = opened(interpreter_, given);
    if (depth > deepest) return std::nullopt;
    if (const auto* known = as<Known>(value)) {
      if (!is_plain(known->object.get())) return std::nullopt;
      return Written{value, folded(interpreter_, value)};
    }
    if (const auto* sequence = as<Sequence>(value)) return of_elements(*sequence, depth);
    if (const auto* dictionary = as<Dictionary>(value)) return of_items(*dictionary, depth);
    is_known_ = false;
    if (const auto* number = as<Number>(value)) return Written{value, number_of(number->type)};
    if (!is_string(value)) return std::nullopt;
    return Written{value, python::string("")};
  }

  bool is_known() const { return is_known_; }

 private:
  static bool is_plain(PyObject* object) {
    return object == Py_None || PyBool_Check(object) || PyLong_CheckExact(object) ||
           PyFloat_CheckExact(object) || PyUnicode_CheckExact(object);
  }

  static Object number_of(graph::Type::Kind type) {
    if (type == graph::Type::Kind::boolean) return python::boolean(false);
    if (type == graph::Type::Kind::i64) return python::integer(0);
    return Object::steal(PyFloat_FromDouble(0));
  }

  std::optional<Written> of_elements(const Sequence& sequence, int depth) {
    if (sequence.type || sequence.viewed != nullptr || sequence.elements.rolled() != nullptr)
      return std::nullopt;
    std::vector<Value> elements;
    std::vector<Object> examples;
    for (const Value& element : sequence.elements) {
      const std::optional<Written> part = of(element, depth + 1);
      if (!part) return std::nullopt;
      elements.push_back(part->value);
      examples.push_back(part->example);
    }
    return Written{make_list(std::move(elements)), python::list(examples)};
  }

  std::optional<Written> of_items(const Dictionary& dictionary, int depth) {
    if (dictionary.type) return std::nullopt;
    auto copy = made_dict({});
    const Object examples = interpreter_.must(PyDict_New());
    for (const auto& [key, value] : dictionary.items) {
      const std::optional<Written> part = is_plain(key.get()) ? of(value, depth + 1) : std::nullopt;
      if (!part) return std::nullopt;
      copy->items.emplace_back(key, part->value);
      python::check_status(PyDict_SetItem(examples.get(), key.get(), part->example.get()));
    }
    return Written{copy, examples};
  }

  Interpreter& interpreter_;
  bool is_known_ = true;
};

/// json.dumps(value, …) of containers, texts and numbers.
Value call_dumps(Interpreter& interpreter, const CallArguments& arguments) {
  static PyObject* const dumps = imported("json.dumps");
  static constexpr std::array<std::string_view, 5> options = {"ensure_ascii", "check_circular",
                                                              "indent", "separators", "sort_keys"};
  if (arguments.positional.size() != 1) return nullptr;
  const Object named = interpreter.must(PyDict_New());
  for (const auto& [name, value] : arguments.keywords) {
    if (std::ranges::find(options, name) == options.end()) return nullptr;
    python::check_status(
        PyDict_SetItemString(named.get(), name.c_str(), folded(interpreter, value).get()));
  }
  Writing writing(interpreter);
  const std::optional<Written> written = writing.of(arguments.positional[0]);
  if (!written) return nullptr;
  // It is also made where only the run knows the text: what does not raise now does not then.
  const Object text =
      interpreter.must(PyObject_Call(dumps, python::tuple({written->example}).get(), named.get()));
  if (writing.is_known()) return interpreter.constant(text);
  CallArguments deferred = arguments;
  deferred.positional[0] = written->value;
  return defer(interpreter, Object::borrow(dumps), deferred, &PyUnicode_Type);
}

}  // namespace

std::span<const SpecialCallable> json_callables() {
  static constexpr SpecialCallable table[] = {{"_json.make_scanner.__call__", call_scanner},
                                              {"json.dumps", call_dumps}};
  return table;
}

}  // namespace janus::frontend
