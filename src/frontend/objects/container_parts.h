// What the files about containers share.
#pragma once

#include "frontend/values/value.h"
#include "frontend/values/element_list.h"
#include "frontend/core/interpreter.h"


namespace janus::frontend {

// --- containers of the real world (containers.cpp, dicts.cpp) ------------------------------------

/// Whether the object is a dict, or of a class whose items are read and stored as a dict's.
bool is_plain_dict(PyObject* object);
bool is_counter(PyTypeObject* type);
bool is_deque(PyObject* object);
bool is_deque(const Sequence& sequence);
/// The names of the fields of a named tuple's class, or of one derived from it that changes nothing
/// of what tuples do (borrowed); null for any other.
PyObject* tuple_fields(PyTypeObject* type);
/// Whether it is a tuple, or of a class of tuples that hold just their elements: torch.Size, named
/// tuples, torch.return_types.
bool is_tuple_like(PyObject* object);
/// A part of a container as it is at the entry.
Value part_at_entry(Interpreter& interpreter, PyObject* object, const Known& known,
                    Source::Kind kind, const python::Object& key, Py_ssize_t index);
/// The twin of a real list, tuple or deque.
Value open_sequence(Interpreter& interpreter, const Known& known);
/// The value of a dict's key; what `__dict__` holds are the attributes of its object.
Value dict_part(Interpreter& interpreter, PyObject* object, const Known& known,
                const python::Object& key);
/// A number there differs from call to call, as elements move on.
void note_moving(Interpreter& interpreter, const Source* source, PyObject* element);
/// The dict of the real world that a value is or is the twin of.
struct RealDict {
  PyObject* object = nullptr;
  const Source* source = nullptr;
};
std::optional<RealDict> real_dict(const Value& value);
const Source* length_path(Interpreter& interpreter, const Source* source);
/// A list that the run makes longer has another length each time.
void note_length(Interpreter& interpreter, const Source* source);

// --- lists (lists.cpp) ---------------------------------------------------------------------------

size_t checked_index(Interpreter& interpreter, const Sequence& sequence, const Value& key);
struct SliceRange {
  Py_ssize_t start, step, count;
};
SliceRange slice_range(Interpreter& interpreter, const SliceValue& slice, size_t length);
/// elements[index] for an index that only the run knows; null if no number of the graph can be it.
Value element_at(Interpreter& interpreter, const std::vector<Value>& elements, const Value& index);
/// A list that changes: one made in the run, or the twin of a real one; null for anything else.
Sequence* changing_list(Interpreter& interpreter, const Value& value);
void note_list_change(Interpreter& interpreter, const Sequence& list);
Value sequence_method(Interpreter& interpreter, const std::shared_ptr<Sequence>& sequence,
                      const std::string& name);
/// list.append and list.extend of a real list: what it holds does not matter.
Value grow_list(Interpreter& interpreter, const Known& known, std::vector<Value> elements);
/// What only deques have (deques.cpp); null for other names.
Value deque_method(const std::shared_ptr<Sequence>& deque, const std::string& name);
/// A deque's elements beyond its length fall off, at the left or the right.
void trim_deque(Sequence& deque, bool left);

// --- dicts (dicts.cpp) ---------------------------------------------------------------------------

Value dictionary_part(Interpreter& interpreter, const std::pair<python::Object, Value>& item,
                      const std::string& part);
Value dict_method(const std::shared_ptr<Dictionary>& dictionary, const std::string& name);
/// self.update(*arguments) of a dict, real or made in the run.
void update_dict(Interpreter& interpreter, const Value& self, const CallArguments& arguments);
PyTypeObject* ordered_dict_type();
/// Methods of a real dict that do not look at all that it holds.
Value real_dict_method(const Value& self, const std::string& name);
/// What an object of a class derived from dict holds, whatever methods the class has; null for any
/// other.
std::shared_ptr<Dictionary> held_items(Interpreter& interpreter, const Value& object);
/// What d[key] gives where there is no such key.
Value missing_item(Interpreter& interpreter, const Value& self, const Value& key);

// --- sets (sets.cpp) -----------------------------------------------------------------------------

/// The value as a set keeps it and looks for it: a constant, or an object that is equal to nothing
/// but itself.
Value set_element(Interpreter& interpreter, const Value& value);
bool holds(Interpreter& interpreter, const std::vector<Value>& elements, const Value& element);
Value set_method(const std::shared_ptr<SetValue>& set, const std::string& name);
/// Methods of a real set; some do not look at what it holds.
Value real_set_method(const Value& self, const std::string& name);
int64_t set_length(Interpreter& interpreter, const Known& known);
/// The elements in Python's order; refuses where that is not known.
std::vector<Value> set_elements(Interpreter& interpreter, const SetValue& set);

void expect_count(Interpreter& interpreter, const CallArguments& arguments, size_t least,
                  size_t most);

}  // namespace janus::frontend
