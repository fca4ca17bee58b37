// Regular expressions: patterns and what they match never change, and the texts are known, so that
// the methods are called now.
#include <algorithm>
#include <array>
#include <utility>

#include "frontend/core/known_callables.h"
#include "frontend/core/operations.h"
#include "frontend/core/torch_objects.h"
#include "frontend/library/special_callables.h"
#include "frontend/objects/folding.h"
#include "frontend/values/constants.h"
#include "frontend/values/make.h"

namespace janus::frontend {

using python::Object;

namespace {

bool is_of_class(PyObject* object, PyObject* type) {
  return object != nullptr && reinterpret_cast<PyObject*>(Py_TYPE(object)) == type;
}

bool is_pattern(PyObject* object) { return is_of_class(object, imported("re.Pattern")); }
bool is_match(PyObject* object) { return is_of_class(object, imported("re.Match")); }

/// Whether the method can be given the value: no function that makes the replacements. A number may
/// be of a class derived from int, as what stands for no `count` is since Python 3.13.
bool is_plain(const Value& value) {
  PyObject* const object = known_object(value);
  return object != nullptr && (is_immutable_constant(object) || PyLong_Check(object) ||
                               is_pattern(object) || is_match(object));
}

Value result_of(ValueMaker& maker, const Object& result) {
  PyObject* const object = result.get();
  if (PyList_CheckExact(object) || PyIter_Check(object)) {
    std::vector<Value> elements;
    for (const Object& element : python::elements(object))
      elements.push_back(maker.constant(element));
    return PyList_CheckExact(object) ? Value(make_list(std::move(elements)))
                                     : iterate_elements(std::move(elements));
  }
  if (!PyDict_CheckExact(object)) return maker.constant(result);
  auto dict = made_dict({});
  PyObject *key = nullptr, *value = nullptr;
  for (Py_ssize_t at = 0; PyDict_Next(object, &at, &key, &value);)
    dict->items.emplace_back(Object::borrow(key), maker.constant_borrowed(value));
  return dict;
}

Value call_now(Interpreter& interpreter, const char* path, const CallArguments& arguments) {
  const auto is_plain_keyword = [](const auto& keyword) { return is_plain(keyword.second); };
  if (!std::ranges::all_of(arguments.positional, is_plain) ||
      !std::ranges::all_of(arguments.keywords, is_plain_keyword))
    return nullptr;
  std::vector<Object> given;
  for (const Value& value : arguments.positional) given.push_back(folded(interpreter, value));
  const Object named = interpreter.must(PyDict_New());
  for (const auto& [name, value] : arguments.keywords)
    python::check_status(
        PyDict_SetItemString(named.get(), name.c_str(), folded(interpreter, value).get()));
  const Object positional = python::tuple(given);
  return result_of(interpreter,
                   interpreter.must(PyObject_Call(imported(path), positional.get(), named.get())));
}

constexpr std::array kMethods = {
    "re.Pattern.match", "re.Pattern.search", "re.Pattern.fullmatch", "re.Pattern.sub",
    "re.Pattern.subn",  "re.Pattern.split",  "re.Pattern.findall",   "re.Pattern.finditer",
    "re.Match.group",   "re.Match.groups",   "re.Match.groupdict",   "re.Match.__getitem__",
    "re.Match.start",   "re.Match.end",      "re.Match.span",        "re.Match.expand",
};

template <size_t index>
Value call_method(Interpreter& interpreter, const CallArguments& arguments) {
  return call_now(interpreter, kMethods[index], arguments);
}

/// re._compile(pattern, flags), by which all functions of `re` find the pattern.
Value call_compile(Interpreter& interpreter, const CallArguments& arguments) {
  static PyObject* const debug = imported("re.DEBUG");
  if (arguments.positional.size() != 2 ||
      !std::ranges::all_of(arguments.positional,
                           [](const Value& value) { return known_object(value) != nullptr; }))
    return nullptr;
  const Object flags = folded(interpreter, arguments.positional[1]);
  const Object shown = interpreter.must(PyNumber_And(flags.get(), debug));
  if (PyObject_IsTrue(shown.get()) != 0) return nullptr;
  CallArguments given;
  given.positional = {arguments.positional[0],
                      interpreter.constant(interpreter.must(PyNumber_Long(flags.get())))};
  return call_now(interpreter, "re._compile", given);
}

template <size_t... index>
constexpr auto rows(std::index_sequence<index...> /*rows*/) {
  return std::array<SpecialCallable, sizeof...(index) + 1>{
      {{"re._compile", call_compile}, {kMethods[index], call_method<index>}...}};
}

}  // namespace

std::span<const SpecialCallable> pattern_callables() {
  static constexpr auto table = rows(std::make_index_sequence<kMethods.size()>());
  return table;
}

}  // namespace janus::frontend
