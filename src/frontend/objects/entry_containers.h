// Containers that exist before the call. Where the program reads or changes one as a whole, it is
// opened: a container of the run takes its place, with guards on its length or keys, and takes its
// changes. Single parts are read with a guard on that part alone.
#pragma once

#include <memory>

#include "frontend/core/interpreter.h"

namespace janus::frontend {

/// Implements opened() of core/operations.h.
Value open_container(Interpreter& interpreter, const Value& value);

/// Opens a list, tuple or deque.
Value open_sequence(Interpreter& interpreter, const Known& known);

/// What an object of a class derived from list holds, whatever methods the class has; null for any
/// other object.
std::shared_ptr<Sequence> held_elements(Interpreter& interpreter, const Value& object);

/// What the value holds if it is a list, also of a class derived from list; else null.
Value list_contents(Interpreter& interpreter, const Value& value);

/// What an object of a class derived from dict holds, whatever methods the class has; null for any
/// other object.
std::shared_ptr<Dictionary> held_items(Interpreter& interpreter, const Value& object);

/// A part of a container as it was at the entry.
Value part_at_entry(Interpreter& interpreter, PyObject* object, const Known& known,
                    Source::Kind kind, const python::Object& key, Py_ssize_t index);

/// The value of a dict's key as it was at the entry. What a `__dict__` holds are the attributes of
/// its object.
Value dict_part(Interpreter& interpreter, PyObject* object, const Known& known,
                const python::Object& key);

/// The access path of a container's length.
const Source* length_path(GraphWriter& writer, const Source* source);

/// Notes that the program makes the list longer: its length is another at each call.
void note_length(Interpreter& interpreter, const Source* source);

/// Notes that elements move on: a number at this place is another at each call.
void note_moving(Interpreter& interpreter, const Source* source, PyObject* element);

}  // namespace janus::frontend
