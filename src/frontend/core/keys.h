// Keys of dicts, compared as Python compares them.
#pragma once

#include "frontend/values/value.h"

namespace janus::frontend {

class Frames;

/// Whether a dict takes the two for the same key.
bool same_key(const Frames& frames, PyObject* left, PyObject* right);

/// dictionary[key] = value, or del dictionary[key] for a null value.
void change_item(const Frames& frames, Dictionary& dictionary, const python::Object& key,
                 const Value& value);

}  // namespace janus::frontend
