// Callables that the front end knows by identity: which operator of the graph one means, or which
// handler computes it. The tables of handlers stand in the rooms that have them; output/ registers
// them before the first generation.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "frontend/values/value.h"
#include "graph/op.h"

namespace janus::frontend {

class Interpreter;

/// What a known callable does when it is called with these arguments; null result: not handled
/// after all (then it is inlined or refused).
using Handler = Value (*)(Interpreter& interpreter, const CallArguments& arguments);

/// A callable and its handler. `path` is where Python finds it: "torch.no_grad", "builtins.len".
struct SpecialCallable {
  const char* path;
  Handler handler;
};

/// Gives a table. It may be empty for a while, as NumPy's is until the program has loaded that.
using CallableTable = std::span<const SpecialCallable> (*)();
/// Called once, before the first look-up. The tables' tables must live as long as the process.
void register_callables(std::span<const CallableTable> tables);

/// The operators that the callable may mean (overloads), in order; `in_place`: it is the
/// trailing-underscore form of them.
struct OperatorForm {
  std::vector<const graph::OpDef*> ops;
  bool in_place = false;
};

/// What binding makes the builtin method of: the entry of its object's class, or of its object if
/// that is a class itself and the method one of the class. Null: no such.
PyObject* unbound_builtin(PyObject* method);

/// The handler of a callable, or null.
Handler special_handler(PyObject* callable);

/// Of the callable that the tables state by that path, whatever the program has there.
Handler handler_named(std::string_view path);
/// The same, or null.
Handler handler_named_or_null(std::string_view path);

const OperatorForm* operator_form(PyObject* callable);

const OperatorForm* operator_form_named(std::string_view python_name);

}  // namespace janus::frontend
