#include "frontend/objects/partials.h"

#include <algorithm>

#include "frontend/core/class_of.h"
#include "frontend/core/exceptions.h"
#include "frontend/core/object_kinds.h"
#include "frontend/core/operations.h"
#include "frontend/core/torch_objects.h"
#include "frontend/objects/attributes.h"
#include "frontend/objects/special_callables.h"
#include "frontend/values/constants.h"
#include "frontend/values/make.h"

namespace janus::frontend {

using python::Object;

namespace {

/// `later` beside `earlier`, in Python's order; where both have a name, the value of `later`.
std::vector<std::pair<std::string, Value>> merged(
    std::vector<std::pair<std::string, Value>> earlier,
    const std::vector<std::pair<std::string, Value>>& later) {
  for (const auto& keyword : later) {
    const auto found =
        std::ranges::find(earlier, keyword.first, &std::pair<std::string, Value>::first);
    if (found == earlier.end())
      earlier.push_back(keyword);
    else
      found->second = keyword.second;
  }
  return earlier;
}

/// What stands for an argument that a later call gives: `functools.Placeholder`, since Python 3.14.
bool is_placeholder(const Value& value) {
  static PyObject* const placeholder =
      python::try_attribute(python::import_module("functools").get(), "Placeholder").release();
  return placeholder != nullptr && known_object(value) == placeholder;
}

PartialParts joined(PartialParts inner, const CallArguments& arguments) {
  auto& all = inner.arguments;
  auto next = arguments.positional.begin();
  for (Value& each : all.positional)
    if (is_placeholder(each) && next != arguments.positional.end()) each = *next++;
  all.positional.insert(all.positional.end(), next, arguments.positional.end());
  all.keywords = merged(std::move(all.keywords), arguments.keywords);
  return inner;
}

}  // namespace

PartialParts parts_of_partial(Interpreter& interpreter, const Value& partial) {
  PartialParts parts;
  parts.arguments.positional = elements_of(interpreter, attribute(interpreter, partial, "args"));
  const Value keywords = opened(interpreter, attribute(interpreter, partial, "keywords"));
  for (const auto& [key, value] : as<Dictionary>(keywords)->items)
    parts.arguments.keywords.emplace_back(text_of(key.get()), value);
  parts.function = attribute(interpreter, partial, "func");
  return parts;
}

Value make_partial(Value function, const CallArguments& arguments) {
  static PyObject* const type = imported("functools.partial");
  auto made = std::make_shared<Instance>(Object::borrow(type));
  auto keywords = made_dict({});
  for (const auto& [name, value] : arguments.keywords)
    keywords->items.emplace_back(Object::steal(PyUnicode_InternFromString(name.c_str())), value);
  const std::pair<const char*, Value> fields[] = {{"func", std::move(function)},
                                                  {"args", make_tuple(arguments.positional)},
                                                  {"keywords", keywords}};
  for (const auto& [name, value] : fields)
    made->fields->items.emplace_back(Object::steal(PyUnicode_InternFromString(name)), value);
  return made;
}

Value call_partial(Interpreter& interpreter, const Value& partial, const CallArguments& arguments) {
  const PartialParts all = joined(parts_of_partial(interpreter, partial), arguments);
  if (std::ranges::any_of(all.arguments.positional, is_placeholder))
    raise(interpreter, PyExc_TypeError, "TypeError: a partial without all of its arguments");
  return call(interpreter, all.function, all.arguments);
}

namespace {

/// Whether Python takes a partial of the callable apart: it does unless that has attributes.
bool is_taken_apart(const Value& callable) {
  if ((as<Instance>(callable) == nullptr && as<Known>(callable) == nullptr) ||
      !is_partial(class_of(callable)))
    return false;
  PyObject* const known = known_object(callable);
  PyObject** const attributes = known == nullptr ? nullptr : _PyObject_GetDictPtr(known);
  return attributes == nullptr || *attributes == nullptr;
}

Value call_partial_class(Interpreter& interpreter, const CallArguments& arguments) {
  const auto is_named_placeholder = [](const auto& keyword) {
    return is_placeholder(keyword.second);
  };
  if (arguments.positional.empty() || is_placeholder(arguments.positional.back()) ||
      std::ranges::any_of(arguments.keywords, is_named_placeholder))
    return nullptr;
  const Value function = arguments.positional[0];
  CallArguments given = arguments;
  given.positional.erase(given.positional.begin());
  if (!is_taken_apart(function)) return make_partial(function, given);
  const PartialParts all = joined(parts_of_partial(interpreter, function), given);
  return make_partial(all.function, all.arguments);
}

}  // namespace

std::span<const SpecialCallable> partial_callables() {
  static constexpr SpecialCallable table[] = {{"functools.partial", call_partial_class}};
  return table;
}

}  // namespace janus::frontend
