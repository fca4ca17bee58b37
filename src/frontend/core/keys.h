// Keys of dicts, compared as Python compares them.
#pragma once

#include "frontend/values/value.h"

namespace janus::frontend {

class Interpreter;

/// Whether a dict takes the two for the same key.
bool same_key(Interpreter& interpreter, PyObject* left, PyObject* right);

/// dictionary[key] = value, or del dictionary[key] for a null value.
void change_item(Interpreter& interpreter, Dictionary& dictionary, const python::Object& key,
                 const Value& value);

}  // namespace janus::frontend
