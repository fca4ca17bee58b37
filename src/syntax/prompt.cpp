#include "syntax/prompt.h"

#include <algorithm>

#include "base/check.h"
#include "base/policy.h"
#include "syntax/compile.h"

namespace janus::syntax {
namespace {

using python::Object;

/// All lines that readline remembers, oldest first.
std::vector<std::string> remembered_lines() {
  std::vector<std::string> lines;
  PyObject* modules = PyImport_GetModuleDict();
  PyObject* readline = PyDict_GetItemString(modules, "readline");
  if (readline == nullptr) return lines;
  const int64_t count =
      python::to_integer(python::call_method(readline, "get_current_history_length").get());
  for (int64_t i = 1; i <= count; ++i) {
    const Object line =
        python::call_method(readline, "get_history_item", {python::integer(i).get()});
    lines.push_back(PyUnicode_Check(line.get()) ? python::to_string(line.get()) : std::string());
  }
  return lines;
}

bool is_indented(const std::string& line) {
  return line.empty() || line[0] == ' ' || line[0] == '\t';
}

size_t last_line(PyObject* code) {
  size_t last = static_cast<size_t>(reinterpret_cast<PyCodeObject*>(code)->co_firstlineno);
  const Object ranges = python::call_method(code, "co_lines");
  for (const Object& range : python::elements(ranges.get()))
    if (PyObject* line = PyTuple_GET_ITEM(range.get(), 2); line != Py_None)
      last = std::max(last, static_cast<size_t>(python::to_integer(line)));
  for (const Object& nested : nested_codes(code)) last = std::max(last, last_line(nested.get()));
  return last;
}

bool parses(const std::vector<std::string>& lines, const std::string& file) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  try {
    parse_file(python::string(text).get(), file);
    return true;
  } catch (const python::ErrorSet&) {
    PyErr_Clear();
    return false;
  }
}

/// The shortest run of first lines, at least `least`, that is a whole statement; empty if there is
/// none.
std::vector<std::string> whole_statement(const std::vector<std::string>& lines, size_t least,
                                         const std::string& file) {
  const size_t most = std::min(lines.size(), least + policy::kMostPromptExtensions);
  for (size_t count = least; count <= most; ++count) {
    std::vector<std::string> part(lines.begin(),
                                  lines.begin() + static_cast<std::ptrdiff_t>(count));
    // A statement of several lines continues while lines are indented.
    if (count < lines.size() && is_indented(lines[count])) continue;
    if (parses(part, file)) return part;
  }
  return {};
}

Object as_list(const std::vector<std::string>& lines) {
  std::vector<Object> result;
  for (const std::string& line : lines) result.push_back(python::string(line + "\n"));
  return python::list(result);
}

/// The contents of IPython's cells behind a magic in their first lines, latest first.
std::vector<Object> cells_of_magics() {
  std::vector<Object> found;
  PyObject* ipython = PyDict_GetItemString(PyImport_GetModuleDict(), "IPython");
  if (ipython == nullptr) return found;
  const Object shell = python::call_method(ipython, "get_ipython");
  if (shell.is(Py_None)) return found;
  const Object history = python::attribute(shell.get(), "history_manager");
  std::vector<Object> cells =
      python::elements(python::attribute(history.get(), "input_hist_raw").get());
  std::ranges::reverse(cells);
  for (const Object& cell : cells) {
    const std::vector<Object> lines =
        python::elements(python::call_method(cell.get(), "splitlines", {Py_True}).get());
    if (lines.size() > 1 && python::to_string(lines[0].get()).starts_with("%%"))
      found.push_back(python::list({lines.begin() + 1, lines.end()}));
    if (found.size() >= policy::kMostPromptStatements) break;
  }
  return found;
}

constexpr std::string_view kTimedCell = "<timed exec>";

}  // namespace

bool is_prompt(const std::string& file) {
  return file == "<stdin>" || file == "<console>" || file == kTimedCell;
}

std::vector<Object> typed_lines(PyObject* code) {
  if (context_of(code).file == kTimedCell) return cells_of_magics();
  const auto* fields = reinterpret_cast<PyCodeObject*>(code);
  const std::string name = python::to_string(fields->co_name);
  const std::string file = python::to_string(fields->co_filename);
  const auto first = static_cast<size_t>(std::max(fields->co_firstlineno, 1));
  const size_t least = last_line(code);
  const std::vector<std::string> all = remembered_lines();
  std::vector<Object> found;
  size_t statements = 0;
  for (size_t start = all.size(); start-- > 0 && statements < policy::kMostPromptStatements;) {
    if (is_indented(all[start]) || start + first > all.size()) continue;
    const std::string& line = all[start + first - 1];
    const bool begins = name == "<lambda>" ? line.find("lambda") != std::string::npos
                                           : line.find("def " + name) != std::string::npos ||
                                                 line.find('@') != std::string::npos;
    if (!begins) continue;
    ++statements;
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(start);
    const std::vector<std::string> lines(
        begin, begin + static_cast<std::ptrdiff_t>(
                           std::min(policy::kMostPromptLines, all.size() - start)));
    if (std::vector<std::string> whole = whole_statement(lines, least, file); !whole.empty())
      found.push_back(as_list(whole));
    if (statements > policy::kMostPromptDoubled) continue;
    // readline remembers only one of two equal lines in a row.
    for (size_t i = 0; i + 1 < least && i < lines.size(); ++i) {
      std::vector<std::string> doubled = lines;
      doubled.insert(doubled.begin() + static_cast<std::ptrdiff_t>(i), lines[i]);
      if (std::vector<std::string> whole = whole_statement(doubled, least, file); !whole.empty())
        found.push_back(as_list(whole));
    }
  }
  return found;
}

std::string keep_typed_lines(const std::string& file, const Object& lines) {
  static int count = 0;
  std::string name = cat(file.substr(0, file.size() - 1), "-", ++count, ">");
  const Object cache = python::import_attribute("linecache", "cache");
  const Object text = python::check(PyUnicode_Join(python::string("").get(), lines.get()));
  const Object entry = python::tuple({python::integer(PyUnicode_GET_LENGTH(text.get())),
                                      python::none(), lines, python::string(name)});
  python::check_status(PyObject_SetItem(cache.get(), python::string(name).get(), entry.get()));
  return name;
}

}  // namespace janus::syntax
