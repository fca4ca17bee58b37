// What id() gives (frontend/core/identity_numbers.h has the function itself). Of an object that is
// assumed to be that one at each entry, it is the number itself. Of others only the run knows it:
// of those that the run makes, of texts and numbers, and of objects that come and go (of classes
// without a hash, as most dataclasses; partials and bound methods).
//
// Such a number is a Python object of its own that stands for "the id of that value". It can be a
// key of a dict of the run and be compared with its like. Everything else (arithmetic, its text,
// its hash) raises, so it is refused. After the run it is what id() then gives.
#pragma once

#include <memory>

#include "frontend/values/value.h"
#include "speculate/source.h"

namespace janus::frontend {

/// Whether it is the number of an object that only the run knows.
bool is_identity_number(PyObject* object);
/// Whether it is one, or a tuple with one somewhere in it.
bool has_identity_number(PyObject* object);
/// Whose number it is; null if the object has died, or for another object.
Value numbered_by(PyObject* number);
/// A new one, of a value that this interpretation has.
python::Object make_identity_number(const void* interpretation, const Value& of);
/// All of the interpretation. They end with it.
std::vector<PyObject*> identity_numbers_of(const void* interpretation);

/// Whether it is the number of an object that is assumed to be that one.
bool is_lasting_number(PyObject* number);
/// The numbers of an earlier interpretation say nothing of this one's.
void begin_lasting_numbers(const std::shared_ptr<const speculate::SourceTable>& interpretation);
/// The object is assumed to be that one.
void note_lasting_number(PyObject* object);

}  // namespace janus::frontend
