// Strings: f-strings and formatting; with parts that the graph computes they are made after the
// run.
#pragma once

#include "frontend/core/interpreter.h"

namespace janus::frontend {

Value join_formatted(Interpreter& interpreter, const syntax::JoinedStr& string);
/// format(value, spec) after `conversion` ('r', 's', 'a' or -1).
Value format_value(Interpreter& interpreter, const Value& value, int conversion, const Value& spec);
/// The text of an object whose class says it in Python, or of an exception; null for all else.
Value shown_text(Interpreter& interpreter, const Value& value);
/// The same of a function that formats its arguments, which must not raise for any values that
/// these may have: refused otherwise.
Value defer_formatting(Interpreter& interpreter, PyObject* callable,
                       const CallArguments& arguments);
/// Whether making the value needs results of the run.
bool needs_run(const Value& value);

}  // namespace janus::frontend
