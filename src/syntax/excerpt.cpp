#include "syntax/excerpt.h"

#include <algorithm>
#include <string_view>

#include "syntax/compile.h"

namespace janus::syntax {
namespace {

using python::Object;

/// The text of a line (of a list of str), valid as long as the list holds it.
std::string_view line_at(PyObject* lines, Py_ssize_t index) {
  Py_ssize_t size = 0;
  const char* text = PyUnicode_AsUTF8AndSize(PyList_GET_ITEM(lines, index), &size);
  if (text == nullptr) throw python::ErrorSet();
  return {text, static_cast<size_t>(size)};
}

constexpr std::string_view kBlanks = " \t\f\r\n";

std::string_view stripped(std::string_view text) {
  const size_t start = text.find_first_not_of(kBlanks);
  if (start == std::string_view::npos) return {};
  return text.substr(start, text.find_last_not_of(kBlanks) - start + 1);
}

size_t indentation(std::string_view line) {
  return std::min(line.find_first_not_of(" \t\f"), line.size());
}

bool starts_with_word(std::string_view text, std::string_view word) {
  return text.starts_with(word) &&
         (text.size() == word.size() || kBlanks.find(text[word.size()]) != std::string_view::npos);
}

bool starts_definition(std::string_view text) {
  return text.starts_with("@") || starts_with_word(text, "def") || starts_with_word(text, "async");
}

/// The last line of the instructions of the code, nested code included.
Py_ssize_t last_line(PyObject* code) {
  Py_ssize_t last = reinterpret_cast<PyCodeObject*>(code)->co_firstlineno;
  const Object ranges = python::call_method(code, "co_lines");
  while (const Object range = Object::steal(PyIter_Next(ranges.get()))) {
    PyObject* line = PyTuple_GET_ITEM(range.get(), 2);
    if (line != Py_None) last = std::max<Py_ssize_t>(last, PyLong_AsSsize_t(line));
  }
  if (PyErr_Occurred() != nullptr) throw python::ErrorSet();
  for (const Object& nested : nested_codes(code)) last = std::max(last, last_line(nested.get()));
  return last;
}

/// Adds the name that one part of an import statement binds: `a.b as c` binds c, `a.b` binds a.
void add_imported(std::string_view part, std::vector<std::string>& names) {
  part = stripped(part);
  if (const size_t renamed = part.find(" as "); renamed != std::string_view::npos)
    part = stripped(part.substr(renamed + 4));
  else
    part = part.substr(0, part.find('.'));
  if (!part.empty() && part != "*") names.emplace_back(part);
}

void add_all_imported(std::string_view list, std::vector<std::string>& names) {
  while (!list.empty()) {
    const size_t comma = std::min(list.find(','), list.size());
    add_imported(list.substr(0, comma), names);
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
}

/// The list of an import statement that begins on a line, without brackets, comments and line ends.
std::string import_list(PyObject* lines, Py_ssize_t index, std::string_view first) {
  std::string list;
  const bool is_bracketed = first.find('(') != std::string_view::npos;
  for (std::string_view line = first;; line = line_at(lines, index)) {
    line = stripped(line.substr(0, line.find('#')));
    const bool goes_on =
        is_bracketed ? line.find(')') == std::string_view::npos : line.ends_with('\\');
    for (const char character : line)
      if (character != '(' && character != ')' && character != '\\') list += character;
    list += ' ';
    if (!goes_on || ++index >= PyList_GET_SIZE(lines)) return list;
  }
}

}  // namespace

std::optional<std::string> definition_text(PyObject* lines, PyObject* code, int extension) {
  const Py_ssize_t first = reinterpret_cast<PyCodeObject*>(code)->co_firstlineno - 1;
  const Py_ssize_t count = PyList_GET_SIZE(lines);
  if (first < 0 || first >= count) return std::nullopt;
  const std::string_view header = line_at(lines, first);
  if (!starts_definition(stripped(header))) return std::nullopt;
  const size_t indent = indentation(header);
  Py_ssize_t end = std::min(last_line(code), count);
  for (; end < count; ++end) {
    const std::string_view line = line_at(lines, end), text = stripped(line);
    const bool is_outside = !text.empty() && text[0] != '#' && indentation(line) <= indent;
    if (is_outside && extension-- == 0) break;
  }
  if (indent > 0 && first == 0) return std::nullopt;
  std::string result(static_cast<size_t>(indent > 0 ? first - 1 : first), '\n');
  if (indent > 0) result += "if 1:\n";
  for (Py_ssize_t i = first; i < end; ++i) result += line_at(lines, i);
  return result;
}

std::string enclosing_class(const std::string& qualified_name) {
  // In a qualified name `<locals>` follows functions, and the name of a member follows classes.
  constexpr std::string_view kLocals = "<locals>";
  std::vector<std::string_view> parts;
  std::string_view rest = qualified_name;
  while (!rest.empty()) {
    const size_t dot = std::min(rest.find('.'), rest.size());
    parts.push_back(rest.substr(0, dot));
    rest.remove_prefix(std::min(dot + 1, rest.size()));
  }
  for (size_t i = parts.size(); i-- > 1;)
    if (parts[i] != kLocals && parts[i - 1] != kLocals) return std::string(parts[i - 1]);
  return {};
}

std::vector<std::string> imported_names(PyObject* lines) {
  std::vector<std::string> names;
  bool in_definition = false;  // inside a function or class at module level
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(lines); ++i) {
    const std::string_view line = line_at(lines, i);
    if (line.empty() || line[0] == '\n' || line[0] == '#') continue;
    const std::string_view text = stripped(line);
    if (indentation(line) == 0 && text[0] != ')' && text[0] != ']' && text[0] != '}')
      in_definition = starts_definition(text) || starts_with_word(text, "class");
    if (in_definition) continue;
    if (starts_with_word(text, "import")) {
      add_all_imported(import_list(lines, i, text.substr(6)), names);
    } else if (starts_with_word(text, "from")) {
      const size_t import = text.find(" import");
      if (import != std::string_view::npos)
        add_all_imported(import_list(lines, i, text.substr(import + 7)), names);
    }
  }
  return names;
}

}  // namespace janus::syntax
