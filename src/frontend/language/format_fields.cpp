#include "frontend/language/format_fields.h"

#include <algorithm>

#include "frontend/core/torch_objects.h"
#include "frontend/language/strings.h"
#include "frontend/objects/attributes.h"
#include "frontend/objects/folding.h"
#include "frontend/objects/subscripts.h"
#include "frontend/values/constants.h"

namespace janus::frontend {

using python::Object;

namespace {

/// The fields of one format, from left to right.
class FormatFields {
 public:
  FormatFields(Interpreter& interpreter, const CallArguments& arguments)
      : interpreter_(interpreter), arguments_(arguments) {}

  /// `depth`: how many formats this one may have within each other; Python allows two.
  Value text(PyObject* format, int depth = 2) {
    static PyObject* const parse = imported("_string.formatter_parser");
    const Object fields = Object::steal(PyObject_CallOneArg(parse, format));
    const Object all = Object::steal(fields ? PySequence_List(fields.get()) : nullptr);
    if (!all || depth == 0) raises();
    std::vector<Value> parts;
    for (const Object& each : python::elements(all.get())) {
      PyObject* const literal = PyTuple_GET_ITEM(each.get(), 0);
      if (PyUnicode_GET_LENGTH(literal) > 0)
        parts.push_back(interpreter_.constant_borrowed(literal));
      if (PyTuple_GET_ITEM(each.get(), 1) != Py_None) parts.push_back(field(each.get(), depth));
    }
    return join_texts(interpreter_, std::move(parts));
  }

 private:
  [[noreturn]] void raises() {
    PyErr_Clear();
    interpreter_.refuse(ReasonCode::would_raise, "a format that raises for some values");
  }

  /// Of what the parser gives of a field: the text before it, name, format and conversion.
  Value field(PyObject* parsed, int depth) {
    const Value value = named(PyTuple_GET_ITEM(parsed, 1));
    const std::string letter = text_or_nothing(PyTuple_GET_ITEM(parsed, 3));
    if (!letter.empty() && letter != "r" && letter != "s" && letter != "a") raises();
    const int conversion = letter.empty() ? -1 : letter[0];
    PyObject* const spec = PyTuple_GET_ITEM(parsed, 2);
    const bool has_fields = text_of(spec).find('{') != std::string::npos;
    return format_value(interpreter_, value, conversion,
                        has_fields ? text(spec, depth - 1) : interpreter_.constant_borrowed(spec));
  }

  static std::string text_or_nothing(PyObject* object) {
    return object == Py_None ? "" : text_of(object);
  }

  /// What the name of a field leads to, as in `0.val[key]`.
  Value named(PyObject* name) {
    static PyObject* const split = imported("_string.formatter_field_name_split");
    const Object parts = Object::steal(PyObject_CallOneArg(split, name));
    if (!parts) raises();
    Value value = argument(PyTuple_GET_ITEM(parts.get(), 0));
    const Object rest = Object::steal(PySequence_List(PyTuple_GET_ITEM(parts.get(), 1)));
    if (!rest) raises();
    for (const Object& each : python::elements(rest.get())) {
      PyObject* const key = PyTuple_GET_ITEM(each.get(), 1);
      value = PyTuple_GET_ITEM(each.get(), 0) == Py_True
                  ? attribute(interpreter_, value, text_of(key))
                  : subscript(interpreter_, value, interpreter_.constant_borrowed(key));
    }
    return value;
  }

  /// By its number, its name, or where there is neither, the next one.
  const Value& argument(PyObject* first) {
    const bool is_next = PyUnicode_Check(first) && PyUnicode_GET_LENGTH(first) == 0;
    if (!is_next && !PyLong_Check(first)) {
      const Value* found = arguments_.keyword(text_of(first));
      if (found == nullptr) raises();
      return *found;
    }
    bool& is_used = is_next ? counts_ : is_numbered_;
    is_used = true;
    const size_t place = is_next ? next_++ : PyLong_AsSize_t(first);
    if ((counts_ && is_numbered_) || PyErr_Occurred() || place >= arguments_.positional.size() - 1)
      raises();
    return arguments_.positional[place + 1];
  }

  Interpreter& interpreter_;
  const CallArguments& arguments_;
  size_t next_ = 0;
  bool counts_ = false, is_numbered_ = false;
};

/// Whether no format finds anything in it that changes.
bool has_no_parts(const Value& value) {
  PyObject* const known = known_object(value);
  return as<Number>(value) != nullptr || as<Deferred>(value) != nullptr || is_varying_text(value) ||
         (known != nullptr && is_immutable_constant(known));
}

}  // namespace

Value format_by_fields(Interpreter& interpreter, PyObject* callable,
                       const CallArguments& arguments) {
  if (!arguments.positional.empty() && !needs_run(arguments.positional[0])) {
    const Object format = folded(interpreter, arguments.positional[0]);
    if (PyUnicode_Check(format.get()))
      return FormatFields(interpreter, arguments).text(format.get());
  }
  const auto& keywords = arguments.keywords;
  if (!std::ranges::all_of(arguments.positional, has_no_parts) ||
      !std::ranges::all_of(keywords, has_no_parts, &std::pair<std::string, Value>::second))
    interpreter.refuse(ReasonCode::expression, "the text of an object");
  return defer_formatting(interpreter, callable, arguments);
}

}  // namespace janus::frontend
