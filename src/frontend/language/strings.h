// Formatting: f-strings, format() and str() of values. A text with parts that the graph computes is
// deferred: Python makes it after the run.
#pragma once

#include "frontend/core/interpreter.h"

namespace janus::frontend {

/// The texts one after the other; made after the run if one of them is.
Value join_texts(Interpreter& interpreter, std::vector<Value> parts);

/// The text of an f-string.
Value join_formatted(Interpreter& interpreter, const syntax::JoinedStr& string);

/// format(value, spec) after `conversion` ('r', 's', 'a' or -1).
Value format_value(Interpreter& interpreter, const Value& value, int conversion, const Value& spec);

/// What a conversion ('r', 's' or 'a') calls: repr, str or ascii (borrowed).
PyObject* text_function(int conversion);

/// str(value) of an exception, or of an object whose class defines it in Python; null for others.
Value shown_text(Interpreter& interpreter, const Value& value);

/// The value, or one that has the same text, whose text after the run is what it is now; null if
/// there is none.
Value lasting(Interpreter& interpreter, const Value& value);

/// format % given
Value format_by_percent(Interpreter& interpreter, const Value& format, const Value& given);

/// Defers a call of a function that formats its arguments; refuses if the call may raise for some
/// values of the arguments, or shows what may be another text after the run.
Value defer_formatting(Interpreter& interpreter, PyObject* callable,
                       const CallArguments& arguments);

/// Whether it is a text that existed before the call, another one in each.
bool is_varying_text(const Value& value);

/// Whether making the value needs results of the run.
bool needs_run(const Value& value);

}  // namespace janus::frontend
