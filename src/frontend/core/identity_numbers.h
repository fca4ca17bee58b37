// What id() gives. Of an object that is assumed to be that one at each entry, it is the number
// itself. Of others only the run knows it: of those that the run makes, of texts and numbers, and
// of objects that come and go (of classes without a hash, as most dataclasses; partials and bound
// methods).
//
// Such a number is a Python object of its own that stands for "the id of that value". It can be a
// key of a dict of the run and be compared with its like. Everything else (arithmetic, its text,
// its hash) raises, so it is refused. After the run it is what id() then gives.
#pragma once

#include "frontend/core/interpreter.h"

namespace janus::frontend {

/// id(value); null for values of which that can't be said.
python::Object identity_number(Interpreter& interpreter, const Value& value);

/// Whether it is the number of an object that is assumed to be that one.
bool is_lasting_number(PyObject* number);

/// Whether it is the number of an object that only the run knows.
bool is_identity_number(PyObject* object);

/// Whose number, known by the run only, it is; null if the object has died, or for another object.
Value numbered_by(PyObject* number);

/// Whether a number that id() gave is that of the value, which is no constant.
bool is_number_of(Interpreter& interpreter, PyObject* number, const Value& value);

}  // namespace janus::frontend
