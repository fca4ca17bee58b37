// Each statement of such an `__init__` stands on a line of its own, and has one of a few forms:
//
//   self.a=a                                        self.a=_dflt_a()
//   self.a=_dflt_a() if a is _HAS_DEFAULT_FACTORY else a
//   __dataclass_builtins_object__.__setattr__(self,'a',a)
//   self.__post_init__(b)                           pass
//
// Which one it is, and its names, follow from what its instructions load and store.
#include "syntax/generated.h"

#include <map>

#include "base/check.h"
#include "syntax/compile.h"

namespace janus::syntax {
namespace {

using python::Object;

/// What the instructions of one line load, store and call.
struct Line {
  std::vector<std::string> locals, cells;
  std::string stored;  ///< the attribute that it assigns
  std::string method;  ///< the attribute that it loads
  std::string text;    ///< a constant
  bool calls = false;
};

/// Adds the instruction's argument: a name, or a tuple of names for two instructions in one.
void add_names(PyObject* argument, std::vector<std::string>& names) {
  if (PyUnicode_Check(argument)) names.push_back(python::to_string(argument));
  if (!PyTuple_Check(argument)) return;
  for (const Object& name : python::elements(argument)) add_names(name.get(), names);
}

void add_instruction(PyObject* instruction, Line& line) {
  const std::string name = python::to_string(python::attribute(instruction, "opname").get());
  const Object argument = python::attribute(instruction, "argval");
  const bool is_text = PyUnicode_Check(argument.get());
  if (name.starts_with("LOAD_FAST"))
    add_names(argument.get(), line.locals);
  else if (name == "LOAD_DEREF")
    add_names(argument.get(), line.cells);
  else if (name == "STORE_ATTR" && is_text)
    line.stored = python::to_string(argument.get());
  else if ((name == "LOAD_METHOD" || name == "LOAD_ATTR") && is_text)
    line.method = python::to_string(argument.get());
  else if (name == "LOAD_CONST" && is_text)
    line.text = python::to_string(argument.get());
  else if (name == "CALL")
    line.calls = true;
}

/// The lines of the code by their numbers.
std::map<int64_t, Line> lines_of(PyObject* code) {
  std::map<int64_t, Line> lines;
  const Object instructions =
      python::call_method(python::import_module("dis").get(), "get_instructions", {code});
  const Object all = python::check(PySequence_List(instructions.get()));
  for (const Object& instruction : python::elements(all.get())) {
    const Object place = python::attribute(instruction.get(), "positions");
    const Object number = python::attribute(place.get(), "lineno");
    if (PyLong_Check(number.get()))
      add_instruction(instruction.get(), lines[python::to_integer(number.get())]);
  }
  return lines;
}

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ",") + part;
  return text;
}

/// What a line stores: an argument, a default, what a factory gives, or one of the two.
std::string stored_value(const std::vector<std::string>& locals,
                         const std::vector<std::string>& cells, bool calls) {
  if (cells.empty()) return locals.empty() ? "" : locals.front();
  const std::string made = cells.back() + (calls ? "()" : "");
  if (cells.size() == 1 || locals.empty()) return made;
  return cat(made, " if ", locals.front(), " is ", cells.front(), " else ", locals.back());
}

std::string statement(const Line& line, const std::string& self) {
  std::vector<std::string> locals = line.locals, cells = line.cells;
  std::erase(locals, self);
  if (!line.stored.empty())
    return cat(self, ".", line.stored, "=", stored_value(locals, cells, line.calls));
  if (line.method.empty()) return "pass";
  if (cells.empty()) return cat(self, ".", line.method, "(", joined(locals), ")");
  const std::string object = cells.front();
  cells.erase(cells.begin());
  return cat(object, ".", line.method, "(", self, ",'", line.text, "',",
             stored_value(locals, cells, true), ")");
}

/// The parameters of the code. Their defaults are the function's.
std::string parameters(PyCodeObject* code) {
  const std::vector<Object> names =
      python::elements(python::attribute(reinterpret_cast<PyObject*>(code), "co_varnames").get());
  std::vector<std::string> written;
  for (int i = 0; i < code->co_argcount + code->co_kwonlyargcount; ++i) {
    if (i == code->co_argcount) written.push_back("*");
    written.push_back(python::to_string(names.at(static_cast<size_t>(i)).get()));
  }
  return joined(written);
}

}  // namespace

Object generated_lines(PyObject* code) {
  auto* fields = reinterpret_cast<PyCodeObject*>(code);
  if (python::to_string(fields->co_filename) != "<string>" ||
      python::to_string(fields->co_name) != "__init__" || fields->co_argcount == 0)
    return {};
  const std::string all = parameters(fields), self = all.substr(0, all.find(','));
  std::vector<Object> text;
  const auto add = [&](const std::string& line) { text.push_back(python::string(line + "\n")); };
  const int64_t first = fields->co_firstlineno;
  if (first < 2) return {};
  for (int64_t i = 2; i < first; ++i) add("");
  add(cat("def __create_fn__(", joined(context_of(code).freevars), "):"));
  add(cat(" def __init__(", all, "):"));
  for (const auto& [number, line] : lines_of(code)) {
    if (number <= first) continue;
    if (number != static_cast<int64_t>(text.size()) + 1) return {};
    add("  " + statement(line, self));
  }
  add(" return __init__");
  return python::list(text);
}

}  // namespace janus::syntax
