// Implements execute(): one function a kind of simple statement. Compound statements are in
// control_flow.cpp, handlers.cpp and match.cpp.
#include "frontend/core/class_of.h"
#include "frontend/core/exceptions.h"
#include "frontend/core/operations.h"
#include "frontend/language/assignment.h"
#include "frontend/language/contexts.h"
#include "frontend/language/control_flow.h"
#include "frontend/language/evaluation.h"
#include "frontend/language/functions.h"
#include "frontend/language/handlers.h"
#include "frontend/language/match.h"
#include "frontend/language/operators.h"
#include "frontend/objects/attributes.h"
#include "frontend/objects/container_classes.h"
#include "frontend/objects/membership.h"
#include "frontend/objects/subscripts.h"
#include "graph/op.h"
#include "python/version.h"

namespace janus::frontend {

using python::Object;
using syntax::ExpressionKind;
using syntax::StatementKind;

namespace {

/// Whether the tensor's attribute is that object already, so that storing it again has no effect:
/// `parameter.grad *= 0.5`.
bool keeps_attribute(Interpreter& interpreter, const Tensor& tensor, const Value& self,
                     const std::string& name, const Value& result) {
  if (name == "data")  // each time another object, over the same memory
    return as<Tensor>(result) != nullptr && as<Tensor>(result)->base.get() == &tensor;
  const bool is_stored =
      name == "grad" ||
      PyObject_HasAttrString(reinterpret_cast<PyObject*>(class_of(self)), name.c_str()) == 0;
  return is_stored && attribute(interpreter, self, name) == result;
}

/// Whether storing an item in the container runs no code of the program.
bool stores_plainly(Interpreter& interpreter, const Value& container) {
  if (const auto* sequence = as<Sequence>(container)) return sequence->is_list;
  if (as<Dictionary>(container) != nullptr) return true;
  PyObject* const object = known_object(container);
  if (object == nullptr) return false;
  if (PyList_CheckExact(object) || is_plain_dict(object)) return true;
  if (!PyDict_Check(object)) return false;
  static PyObject* const store =
      PyDict_GetItemString(python::class_dict(&PyDict_Type), "__setitem__");
  const Value method = special_method(interpreter, container, "__setitem__");
  return as<Method>(method) != nullptr && known_object(as<Method>(method)->function) == store;
}

/// Whether that holds, and the item is that object already.
bool keeps_item(Interpreter& interpreter, const Value& container, const Value& key,
                const Value& result) {
  if (as<SliceValue>(key) != nullptr || !stores_plainly(interpreter, container)) return false;
  const bool may_be_missing = as<Dictionary>(container) != nullptr || real_dict(container);
  return (!may_be_missing || contains(interpreter, container, key)) &&
         subscript(interpreter, container, key) == result;
}

void augment_attribute(Interpreter& interpreter, const syntax::AugAssign& statement) {
  const auto& node = syntax::as<syntax::Attribute>(statement.target);
  const std::string name = interpreter.mangled(node.attr);
  const Value object = evaluate(interpreter, *node.value);
  const Value current = attribute(interpreter, object, name);
  const Value operand = evaluate(interpreter, *statement.value);
  interpreter.at(statement);
  const Value result = binary_in_place(interpreter, statement.op, current, operand);
  const auto* tensor = as<Tensor>(object);
  if (tensor != nullptr && result == current &&
      keeps_attribute(interpreter, *tensor, object, name, result))
    return;
  write_attribute(interpreter, object, name, result);
}

void augment_item(Interpreter& interpreter, const syntax::AugAssign& statement) {
  const auto& node = syntax::as<syntax::Subscript>(statement.target);
  const Value object = evaluate(interpreter, *node.value);
  const Value key = evaluate(interpreter, *node.slice);
  const Value current = subscript(interpreter, object, key);
  const Value operand = evaluate(interpreter, *statement.value);
  interpreter.at(statement);
  const Value result = binary_in_place(interpreter, statement.op, current, operand);
  // To write an item of a list all of it is looked at.
  if (as<Tensor>(result) != nullptr && result == current &&
      keeps_item(interpreter, object, key, result))
    return;
  write_subscript(interpreter, object, key, result);
}

/// The order is Python's: the target's object and key are evaluated once, its value is read, then
/// the operand is evaluated. The result is stored even if it is the same object.
void execute_augmented(Interpreter& interpreter, const syntax::AugAssign& statement) {
  switch (statement.target->kind) {
    case ExpressionKind::Name: {
      const auto& name = syntax::as<syntax::Name>(statement.target);
      const Value current = interpreter.read_name(name.id);
      const Value operand = evaluate(interpreter, *statement.value);
      interpreter.at(statement);
      interpreter.write_name(name.id, binary_in_place(interpreter, statement.op, current, operand));
      return;
    }
    case ExpressionKind::Attribute:
      return augment_attribute(interpreter, statement);
    case ExpressionKind::Subscript:
      return augment_item(interpreter, statement);
    default:
      TORCHJANUS_CHECK(false, "augment: Python's grammar has no such target");
  }
}

void execute_delete(Interpreter& interpreter, const syntax::Expression& target) {
  interpreter.at(target);
  switch (target.kind) {
    case ExpressionKind::Name:
      return interpreter.delete_name(syntax::as<syntax::Name>(&target).id);
    case ExpressionKind::Subscript: {
      const auto& node = syntax::as<syntax::Subscript>(&target);
      Value object = evaluate(interpreter, *node.value);
      return delete_subscript(interpreter, object, evaluate(interpreter, *node.slice));
    }
    case ExpressionKind::Attribute: {
      const auto& node = syntax::as<syntax::Attribute>(&target);
      return delete_attribute(interpreter, evaluate(interpreter, *node.value),
                              interpreter.mangled(node.attr));
    }
    case ExpressionKind::Tuple:
      for (const auto* part : syntax::as<syntax::Tuple>(&target).elts)
        execute_delete(interpreter, *part);
      return;
    case ExpressionKind::List:
      for (const auto* part : syntax::as<syntax::List>(&target).elts)
        execute_delete(interpreter, *part);
      return;
    default:
      TORCHJANUS_CHECK(false, "delete: Python's grammar has no such target");
  }
}

void execute_function_definition(Interpreter& interpreter, const syntax::FunctionDef& statement) {
  if (statement.scope->has_await) interpreter.refuse(ReasonCode::generator, statement.name_);
  std::vector<Value> decorators;
  for (const syntax::Expression* decorator : statement.decorator_list)
    decorators.push_back(evaluate(interpreter, *decorator));
  Value function = make_closure(interpreter, statement.name_, statement.args, statement.scope,
                                &statement.body, nullptr);
  for (size_t i = decorators.size(); i-- > 0;) {
    interpreter.at(statement);
    CallArguments arguments;
    arguments.positional = {function};
    function = call(interpreter, decorators[i], arguments);
  }
  interpreter.write_name(statement.name_, function);
}

/// In a function annotations are not evaluated. Bare statements may stand in one: their frame,
/// which is the calling one, tells.
bool evaluates_annotations(const syntax::Scope& scope) {
  if (scope.kind != syntax::Scope::Kind::statements) return false;
  PyFrameObject* const frame = PyEval_GetFrame();
  if (frame == nullptr) return true;
  const Object code = Object::steal(reinterpret_cast<PyObject*>(PyFrame_GetCode(frame)));
  return (reinterpret_cast<PyCodeObject*>(code.get())->co_flags & CO_OPTIMIZED) == 0;
}

void execute_annotated(Interpreter& interpreter, const syntax::AnnAssign& statement) {
  if (statement.value == nullptr) return;
  Value value = evaluate(interpreter, *statement.value);
  if (evaluates_annotations(*interpreter.frame().variables->scope))
    interpreter.refuse(ReasonCode::statement, "annotated assignment");
  assign(interpreter, *statement.target, value);
}

/// A module that is imported already, as `import` finds it; importing another runs code.
Value imported_module(Interpreter& interpreter, const std::string& name) {
  Object key = interpreter.must(PyUnicode_InternFromString(name.c_str()));
  Object module = Object::steal(PyImport_GetModule(key.get()));
  PyErr_Clear();
  PyObject* const importer = PyDict_GetItemString(PyEval_GetBuiltins(), "__import__");
  if (!module || !PyModule_Check(module.get()) || importer == nullptr ||
      !PyCFunction_Check(importer))
    interpreter.refuse(ReasonCode::statement, cat("import ", name));
  speculate::SourceTable& sources = interpreter.sources();
  const Object modules = Object::borrow(PyImport_GetModuleDict());
  interpreter.assume(speculate::Assumption::Kind::identity,
                     sources.step(speculate::Source::Kind::item,
                                  sources.root(speculate::Source::Kind::constant, modules), key),
                     module);
  return interpreter.wrap(module.get(),
                          interpreter.sources().root(speculate::Source::Kind::constant, module));
}

void execute_import(Interpreter& interpreter, const syntax::Import& statement) {
  for (const syntax::Alias* alias : statement.names) {
    Value module = imported_module(interpreter, alias->name);
    size_t dot = alias->name.find('.');
    if (!alias->asname.empty())
      interpreter.write_name(alias->asname, module);
    else if (dot == std::string::npos)
      interpreter.write_name(alias->name, module);
    else
      interpreter.write_name(alias->name.substr(0, dot),
                             imported_module(interpreter, alias->name.substr(0, dot)));
  }
}

void execute_import_from(Interpreter& interpreter, const syntax::ImportFrom& statement) {
  if (statement.level != 0) interpreter.refuse(ReasonCode::statement, "a relative import");
  Value module = imported_module(interpreter, statement.module);
  for (const syntax::Alias* alias : statement.names) {
    if (alias->name == "*") interpreter.refuse(ReasonCode::statement, "import *");
    interpreter.write_name(alias->asname.empty() ? alias->name : alias->asname,
                           attribute(interpreter, module, alias->name));
  }
}

}  // namespace

Completion execute(Interpreter& interpreter, const syntax::Body& body) {
  for (const syntax::Statement* statement : body) {
    Completion completion = execute(interpreter, *statement);
    if (completion != Completion::normal) return completion;
  }
  return Completion::normal;
}

namespace {
Completion execute_one(Interpreter& interpreter, const syntax::Statement& statement);
}

Completion execute(Interpreter& interpreter, const syntax::Statement& statement) {
  try {
    return execute_one(interpreter, statement);
  } catch (const graph::TypeError& error) {
    interpreter.refuse(ReasonCode::shape_mismatch, error.what());
  } catch (const Raised& raised) {
    interpreter.frame().raised = raised.exception;
    return Completion::raise_;
  }
}

namespace {

Completion execute_one(Interpreter& interpreter, const syntax::Statement& statement) {
  using namespace syntax;  // NOLINT: the node classes of this one function
  interpreter.at(statement);
  interpreter.check_size();
  switch (statement.kind) {
    case StatementKind::Expr:
      evaluate(interpreter, *syntax::as<Expr>(&statement).value);
      return Completion::normal;
    case StatementKind::Assign: {
      const auto& node = syntax::as<Assign>(&statement);
      Value value = evaluate(interpreter, *node.value);
      for (const syntax::Expression* target : node.targets) assign(interpreter, *target, value);
      return Completion::normal;
    }
    case StatementKind::AugAssign:
      execute_augmented(interpreter, syntax::as<AugAssign>(&statement));
      return Completion::normal;
    case StatementKind::AnnAssign:
      execute_annotated(interpreter, syntax::as<AnnAssign>(&statement));
      return Completion::normal;
    case StatementKind::Return: {
      const auto& node = syntax::as<Return>(&statement);
      Value value = node.value == nullptr ? interpreter.none() : evaluate(interpreter, *node.value);
      return execute_return(interpreter, std::move(value));
    }
    case StatementKind::If: {
      const auto& node = syntax::as<If>(&statement);
      return execute_if(interpreter, node);
    }
    case StatementKind::For:
      return execute_for(interpreter, syntax::as<For>(&statement));
    case StatementKind::While:
      return execute_while(interpreter, syntax::as<While>(&statement));
    case StatementKind::With:
      return execute_with(interpreter, syntax::as<With>(&statement));
    case StatementKind::Try:
      return execute_try(interpreter, syntax::as<Try>(&statement));
    case StatementKind::Match:
      return execute_match(interpreter, syntax::as<Match>(&statement));
    case StatementKind::Pass:
    case StatementKind::Global:
    case StatementKind::Nonlocal:
      return Completion::normal;
    case StatementKind::Break:
      if (const auto& loop = interpreter.frame().loop)
        loop->values["left"] = loop->values["breaks"] = interpreter.boolean(true);
      return Completion::break_;
    case StatementKind::Continue:
      return Completion::continue_;
    case StatementKind::Assert:
      return execute_assert(interpreter, syntax::as<Assert>(&statement));
    case StatementKind::Delete:
      for (const syntax::Expression* target : syntax::as<Delete>(&statement).targets)
        execute_delete(interpreter, *target);
      return Completion::normal;
    case StatementKind::FunctionDef:
      execute_function_definition(interpreter, syntax::as<FunctionDef>(&statement));
      return Completion::normal;
    case StatementKind::Import:
      execute_import(interpreter, syntax::as<Import>(&statement));
      return Completion::normal;
    case StatementKind::ImportFrom:
      execute_import_from(interpreter, syntax::as<ImportFrom>(&statement));
      return Completion::normal;
    case StatementKind::Raise:
      return execute_raise(interpreter, syntax::as<Raise>(&statement));
    default:
      break;
  }
  interpreter.refuse(ReasonCode::statement, syntax::name(statement.kind));
}

}  // namespace
}  // namespace janus::frontend
