// Finding a function's syntax. `linecache` gives the text of the file: it knows files, notebook
// cells, doctests and zip archives. The text is parsed, in part if possible, and searched for
// definitions at the first line of the code object. A definition is accepted only if compiling it
// gives the very same code, positions included. So it does not matter how many lambdas share the
// line. A file that was edited since its import, a rewritten module, or another text of the same
// name is noticed. Asserts that pytest has rewritten are rewritten here as well.
#include "syntax/source.h"

#include <algorithm>
#include <unordered_map>
#include <variant>

#include "base/policy.h"
#include "syntax/compile.h"
#include "syntax/convert.h"
#include "syntax/excerpt.h"
#include "syntax/generated.h"
#include "syntax/prompt.h"
#include "syntax/scope_analysis.h"

namespace janus::syntax {
namespace {

using python::Object;

// --- files ---------------------------------------------------------------------------------------

/// A file's text, and its syntax tree.
struct ParsedFile {
  Object text;                       ///< str
  Object module;                     ///< ast.Module; null if the text has errors
  std::vector<std::string> imports;  ///< names that imports at module level bind
};

/// Adds the names that import statements bind, in nested blocks too, but not in functions and
/// classes.
void collect_imports(PyObject* statements, std::vector<std::string>& names) {
  for (const Object& statement : python::elements(statements)) {
    const std::string kind = python::type_name(statement.get());
    if (kind == "Import" || kind == "ImportFrom") {
      for (const Object& alias :
           python::elements(python::attribute(statement.get(), "names").get())) {
        const Object renamed = python::attribute(alias.get(), "asname");
        const std::string name = python::to_string(
            renamed.is(Py_None) ? python::attribute(alias.get(), "name").get() : renamed.get());
        if (name != "*") names.push_back(name.substr(0, name.find('.')));
      }
    } else if (kind != "FunctionDef" && kind != "AsyncFunctionDef" && kind != "ClassDef") {
      for (const char* block : {"body", "orelse", "finalbody"})
        if (const Object inner = python::try_attribute(statement.get(), block))
          if (PyList_CheckExact(inner.get())) collect_imports(inner.get(), names);
      for (const char* block : {"handlers", "cases"})
        if (const Object parts = python::try_attribute(statement.get(), block))
          for (const Object& part : python::elements(parts.get()))
            collect_imports(python::attribute(part.get(), "body").get(), names);
    }
  }
}

/// The name by which linecache knows the file of a code object. The text of a frozen module
/// (`<frozen _collections_abc>`) is in its `__file__`.
Object file_of(const std::string& file, PyObject* globals) {
  if (file.starts_with("<frozen ") && globals != nullptr)
    if (PyObject* named = PyDict_GetItemString(globals, "__file__"); named != nullptr)
      if (PyUnicode_Check(named)) return Object::borrow(named);
  return python::string(file);
}

/// linecache's lines of a file: a list of str, or null if it has none.
Object lines_of(const std::string& file, PyObject* globals) {
  const Object lines =
      python::call_method(python::import_module("linecache").get(), "getlines",
                          {file_of(file, globals).get(), globals != nullptr ? globals : Py_None});
  return PyList_CheckExact(lines.get()) && PyList_GET_SIZE(lines.get()) > 0 ? lines : Object();
}

/// imported_names() of a file's lines, cached for the last list of each file.
const std::vector<std::string>& imports_in(const std::string& file, const Object& lines) {
  static auto& cache =
      *new std::unordered_map<std::string, std::pair<Object, std::vector<std::string>>>();
  auto& [known, names] = cache[file];
  if (!known.is(lines.get())) {
    names = imported_names(lines.get());
    known = lines;
  }
  return names;
}

/// The parsed text, cached for the last text of each file.
ParsedFile parsed(const std::string& file, const Object& lines) {
  const Object text = python::check(PyUnicode_Join(python::string("").get(), lines.get()));
  static auto& cache = *new std::unordered_map<std::string, ParsedFile>();
  if (const auto found = cache.find(file);
      found != cache.end() && python::equal(found->second.text.get(), text.get()))
    return found->second;
  ParsedFile result{text, {}, {}};
  try {
    result.module = parse_file(text.get(), file);
    collect_imports(python::attribute(result.module.get(), "body").get(), result.imports);
  } catch (const python::ErrorSet&) {
    PyErr_Clear();
  }
  cache[file] = result;
  return result;
}

// --- search --------------------------------------------------------------------------------------

/// A candidate for the definition, and its enclosing class.
struct Candidate {
  Object node;
  std::string class_name;
  std::vector<std::string> imports;  ///< the imports in its context
};

/// Collects the definitions (or lambdas) that begin at a given line. A decorator may have renamed
/// the code, as torch.no_grad() does with its own since torch 2.15.
class Search {
 public:
  Search(int line, const std::string& name) : line_(line), is_lambda_(name == "<lambda>") {}

  std::vector<Candidate> run(PyObject* module) {
    children(module);
    return std::move(found_);
  }

 private:
  void children(PyObject* node) {
    static PyObject* const fields = python::interned("_fields");
    for (const Object& field : python::elements(python::attribute(node, fields).get())) {
      const Object value = python::try_attribute(node, field.get());
      if (!value) continue;
      if (PyList_CheckExact(value.get())) {
        for (Py_ssize_t i = 0; i < PyList_GET_SIZE(value.get()); ++i)
          visit(PyList_GET_ITEM(value.get(), i));
      } else {
        visit(value.get());
      }
    }
  }

  void visit(PyObject* node) {
    static PyObject* const base = python::import_attribute("ast", "AST").release();
    if (!PyObject_TypeCheck(node, reinterpret_cast<PyTypeObject*>(base))) return;
    const std::string kind = python::type_name(node);
    const bool is_function = kind == "FunctionDef" || kind == "AsyncFunctionDef";
    const bool is_class = kind == "ClassDef";
    const int start = first_line(node, is_function || is_class);
    if (start > line_ || number(node, "end_lineno", line_) < line_) return;
    if (start == line_ && (is_function ? !is_lambda_ : kind == "Lambda" && is_lambda_))
      found_.push_back({Object::borrow(node), class_name_, {}});
    if (!is_class) return children(node);
    const std::string outer = std::exchange(class_name_, name_of(node));
    children(node);
    class_name_ = outer;
  }

  /// The first line of the node's code: that of its first decorator, if it has one.
  int first_line(PyObject* node, bool has_decorators) const {
    int line = number(node, "lineno", line_);
    if (!has_decorators) return line;
    const Object decorators = python::attribute(node, "decorator_list");
    if (PyList_GET_SIZE(decorators.get()) > 0)
      line = number(PyList_GET_ITEM(decorators.get(), 0), "lineno", line);
    return line;
  }

  static std::string name_of(PyObject* node) {
    return python::to_string(python::attribute(node, "name").get());
  }
  static int number(PyObject* node, const char* name, int otherwise) {
    const Object value = python::try_attribute(node, name);
    return value && PyLong_CheckExact(value.get())
               ? static_cast<int>(python::to_integer(value.get()))
               : otherwise;
  }

  const int line_;
  const bool is_lambda_;
  std::string class_name_;
  std::vector<Candidate> found_;
};

// --- verification --------------------------------------------------------------------------------

/// The compiled code under the other one's name.
Object renamed(const Object& compiled, PyObject* code) {
  return replaced(compiled.get(), {{"co_name", python::attribute(code, "co_name")}});
}

/// Whether compiling the candidate gives the code.
bool matches(const Candidate& candidate, PyObject* code) {
  CodeContext context = context_of(code);
  context.class_name = candidate.class_name;
  context.imports = candidate.imports;
  Object definition = candidate.node;
  if (python::type_name(definition.get()) == "Lambda") {
    const Object place = definition;
    definition = AstBuilder::make("Expr", {{"value", definition}}, nullptr);
    for (const char* name : {"lineno", "col_offset", "end_lineno", "end_col_offset"})
      python::set_attribute(definition.get(), name, python::attribute(place.get(), name).get());
  }
  try {
    const std::vector<Object> codes = compile_definition(definition.get(), context);
    return !codes.empty() && same_code(renamed(codes.back(), code).get(), code);
  } catch (const python::ErrorSet&) {
    PyErr_Clear();  // in other surroundings it may be a syntax error
    return false;
  }
}

/// Whether pytest has rewritten the `assert` statements of a code: it calls its helpers by names
/// that no text can contain.
bool has_rewritten_asserts(PyObject* code) {
  constexpr const char* kHelpers[] = {"@pytest_ar", "@py_builtins"};
  PyObject* names = reinterpret_cast<PyCodeObject*>(code)->co_names;
  return std::ranges::any_of(kHelpers, [&](const char* helper) {
    return PySequence_Contains(names, python::string(helper).get()) == 1;
  });
}

/// Rewrites the `assert` statements of the candidate as pytest does for a test module, by pytest's
/// own function. The module then imports the helpers too.
void rewrite_asserts(Candidate& candidate, std::vector<std::string>& imports) {
  const Object deepcopy = python::import_attribute("copy", "deepcopy");
  const Object rewrite = python::import_attribute("_pytest.assertion.rewrite", "rewrite_asserts");
  const Object copied = python::call(deepcopy.get(), {candidate.node.get()});
  const Object module = AstBuilder::make(
      "Module", {{"body", python::list({copied})}, {"type_ignores", python::list({})}}, nullptr);
  const Object no_text =
      Object::steal(PyBytes_FromString(""));  // only shown by an option of pytest
  python::call(rewrite.get(), {module.get(), no_text.get()});
  const Object body = python::attribute(module.get(), "body");
  collect_imports(body.get(), imports);
  candidate.node = python::elements(body.get()).back();
}

/// The same; tries with and without the names that its module imports.
bool is_confirmed(Candidate& candidate, std::vector<std::string> imports, PyObject* code) {
  if (has_rewritten_asserts(code)) rewrite_asserts(candidate, imports);
  candidate.imports = imports;
  if (matches(candidate, code)) return true;
  // Notebooks and doctests compile each statement by itself, without the imports of others.
  candidate.imports.clear();
  return !imports.empty() && matches(candidate, code);
}

std::optional<Candidate> find(const ParsedFile& file, PyObject* code) {
  const auto* fields = reinterpret_cast<PyCodeObject*>(code);
  for (Candidate& candidate :
       Search(fields->co_firstlineno, python::to_string(fields->co_name)).run(file.module.get()))
    if (is_confirmed(candidate, file.imports, code)) return std::move(candidate);
  return std::nullopt;
}

/// The source of a candidate. `file`: its name in reports; empty: that of the code.
Source available(const Candidate& candidate, PyObject* code, const std::string& file = {}) {
  CodeContext context = context_of(code);
  if (!file.empty()) context.file = file;
  Source source;
  try {
    const std::shared_ptr<Tree> tree =
        convert(candidate.node.get(), std::make_shared<const std::string>(context.file));
    tree->name = python::to_string(python::attribute(code, "co_qualname").get());
    tree->class_name = candidate.class_name;
    analyse_scopes(*tree, context.freevars, false);
    source.tree = tree;
    source.imports = candidate.imports;
  } catch (const UnsupportedSyntax& error) {
    source.why_not = cat("it contains ", error.what());
  }
  return source;
}

/// Finds the definition by its own lines only; see excerpt.h.
std::optional<Candidate> find_by_lines(const std::string& file, const Object& lines,
                                       PyObject* code) {
  const auto* fields = reinterpret_cast<PyCodeObject*>(code);
  for (int extension = 0; extension < policy::kMostExtensionsOfDefinition; ++extension) {
    const auto text = definition_text(lines.get(), code, extension);
    if (!text) return std::nullopt;
    try {
      const Object module = parse_file(python::string(*text).get(), file);
      for (Candidate& candidate :
           Search(fields->co_firstlineno, python::to_string(fields->co_name)).run(module.get())) {
        candidate.class_name =
            enclosing_class(python::to_string(python::attribute(code, "co_qualname").get()));
        if (is_confirmed(candidate, imports_in(file, lines), code)) return std::move(candidate);
      }
      return std::nullopt;
    } catch (const python::ErrorSet&) {
      PyErr_Clear();  // the excerpt is too short, or no definition
    }
  }
  return std::nullopt;
}

std::optional<Candidate> find_in(const std::string& file, const Object& lines, PyObject* code) {
  if (auto candidate = find_by_lines(file, lines, code)) return candidate;
  const ParsedFile whole = parsed(file, lines);
  return whole.module ? find(whole, code) : std::nullopt;
}

struct Located {
  Candidate candidate;
  Object typed;  ///< its lines, if no file has them
};

/// A location, or why it was not found.
using Location = std::variant<Located, std::string>;

Location locate_typed(const std::string& file, PyObject* code) {
  for (const Object& lines : typed_lines(code))
    if (auto candidate = find_in(file, lines, code)) return Located{std::move(*candidate), lines};
  return cat("Python keeps no text of ", file, " and no history holds it");
}

Location locate(PyObject* code, PyObject* globals) {
  const std::string file = context_of(code).file;
  if (const Object written = generated_lines(code))
    if (auto candidate = find_in(file, written, code))
      return Located{std::move(*candidate), written};
  const Object lines = lines_of(file, globals);
  if (lines)
    if (auto candidate = find_in(file, lines, code)) return Located{std::move(*candidate), {}};
  // linecache may have a text that is older than the imported one.
  python::call_method(python::import_module("linecache").get(), "checkcache",
                      {python::string(file).get()});
  const Object fresh = lines_of(file, globals);
  if (fresh && !(lines && python::equal(fresh.get(), lines.get())))
    if (auto candidate = find_in(file, fresh, code)) return Located{std::move(*candidate), {}};
  if (!lines && !fresh && is_prompt(file)) return locate_typed(file, code);
  return lines || fresh ? cat("the text of ", file, " is not what it was compiled from")
                        : cat("there is no text of ", file);
}

Source source_at(const Location& location, PyObject* code) {
  if (const auto* located = std::get_if<Located>(&location)) {
    if (!located->typed) return available(located->candidate, code);
    return available(located->candidate, code,
                     keep_typed_lines(context_of(code).file, located->typed));
  }
  Source source;
  source.why_not = std::get<std::string>(location);
  return source;
}

// --- copies --------------------------------------------------------------------------------------

std::unordered_map<PyObject*, PyObject*>& copies() {
  static auto& map = *new std::unordered_map<PyObject*, PyObject*>();
  return map;
}

}  // namespace

const Source& source_of_code(PyObject* code, PyObject* globals) {
  // Entries keep their code objects alive, so that an address is not reused.
  static auto& cache = *new std::unordered_map<PyObject*, Source>();
  code = original_code(code);
  if (const auto found = cache.find(code); found != cache.end()) return found->second;
  const python::ErrorScope scope;
  Source source;
  try {
    source = source_at(locate(code, globals), code);
  } catch (const python::ErrorSet&) {
    source = {};
    source.why_not = python::take_error_message();
  }
  const auto [entry, is_new] = cache.try_emplace(code, std::move(source));
  if (is_new) Py_INCREF(code);
  return entry->second;
}

const Source& source_of(PyObject* function) {
  static const auto& not_python =
      *new Source{nullptr, "it is not a function written in Python", {}};
  if (PyMethod_Check(function)) function = PyMethod_GET_FUNCTION(function);
  if (!PyFunction_Check(function)) return not_python;
  return source_of_code(PyFunction_GET_CODE(function), PyFunction_GET_GLOBALS(function));
}

Object definition_of(PyObject* function) {
  if (PyMethod_Check(function)) function = PyMethod_GET_FUNCTION(function);
  if (!PyFunction_Check(function)) return {};
  const python::ErrorScope scope;
  try {
    const Location location =
        locate(original_code(PyFunction_GET_CODE(function)), PyFunction_GET_GLOBALS(function));
    const auto* located = std::get_if<Located>(&location);
    return located == nullptr ? Object() : located->candidate.node;
  } catch (const python::ErrorSet&) {
    return {};
  }
}

void note_copy(PyObject* code, PyObject* original) {
  if (!copies().try_emplace(code, original_code(original)).second) return;
  Py_INCREF(code);
  Py_INCREF(original);
}

PyObject* original_code(PyObject* code) {
  const auto found = copies().find(code);
  return found == copies().end() ? code : found->second;
}

std::shared_ptr<Tree> tree_of_statements(PyObject* module, const std::string& file,
                                         const std::string& name, bool at_module_level,
                                         const std::vector<std::string>& frame_variables,
                                         const std::string& class_name) {
  const std::shared_ptr<Tree> tree = convert(module, std::make_shared<const std::string>(file));
  tree->name = name;
  tree->class_name = class_name;
  analyse_scopes(*tree, frame_variables, at_module_level);
  return tree;
}

}  // namespace janus::syntax
