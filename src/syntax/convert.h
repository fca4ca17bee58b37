// From Python's `ast` objects to our Tree, and back.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>

#include "python/object.h"
#include "syntax/tree.h"

namespace janus::syntax {

/// Syntax that has no mirror here (newer than 3.13, type parameters, nested too deeply).
class UnsupportedSyntax : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The mirror of a FunctionDef, AsyncFunctionDef, Lambda or Module object. Its scopes are not
/// analysed yet (scope.h), its name and class are not set. Throws UnsupportedSyntax.
std::shared_ptr<Tree> convert(PyObject* node, std::shared_ptr<const std::string> file);

/// Makes Python `ast` objects of syntax nodes, unchanged unless a virtual function is overridden.
/// Instrumentation overrides them.
class AstBuilder {
 public:
  virtual ~AstBuilder() = default;
  /// New references; None for null.
  virtual python::Object expression(const Expression* node);
  virtual python::Object pattern(const Pattern* node);
  /// Appends the statement (or what replaces it) to the Python list.
  virtual void statement(const Statement* node, PyObject* list);
  python::Object body(const Body& statements);

  /// The node as it is, with its children made by the virtual functions.
  python::Object copy(const Expression& node);
  python::Object copy(const Statement& node);

  /// `ast.<type>(**fields)` at the place of `span`.
  struct Field {
    const char* name;
    python::Object value;
  };
  static python::Object make(const char* type, const std::vector<Field>& fields,
                             const SourceSpan* span);
};

}  // namespace janus::syntax
