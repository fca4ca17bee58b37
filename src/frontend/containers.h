// Virtual lists, tuples, dicts, sets and slices: building, reading, iterating, methods.
#pragma once

#include "frontend/interpreter.h"

namespace janus::frontend {

Value make_tuple(std::vector<Value> elements);
Value make_list(std::vector<Value> elements);

/// list.append(value) of a list made in the run.
void append(Interpreter& interpreter, Sequence& list, const Value& value);

/// A container of the real world (list, tuple, dict, torch.Size, namedtuple, ...) as its virtual
/// twin, with guards for length and keys; any other value as it is.
Value opened(Interpreter& interpreter, const Value& value);

/// iter(value); refuses what is not iterable at generation time.
std::shared_ptr<Iterator> iterate(Interpreter& interpreter, const Value& value);
/// list(value)
std::vector<Value> elements_of(Interpreter& interpreter, const Value& value);
/// Whether a real list or dict holds anything, which is all that is assumed; nothing for others.
std::optional<bool> container_truth(Interpreter& interpreter, const Value& value);
/// len(value) as a number.
Value length_of(Interpreter& interpreter, const Value& value);

/// value[key], value[key] = element, del value[key]
Value subscript(Interpreter& interpreter, const Value& value, const Value& key);
void write_subscript(Interpreter& interpreter, const Value& value, const Value& key,
                     const Value& element);
void delete_subscript(Interpreter& interpreter, const Value& value, const Value& key);

/// element in container, and whether that is so: known, or followed.
Value membership(Interpreter& interpreter, const Value& container, const Value& element);
bool contains(Interpreter& interpreter, const Value& container, const Value& element);

/// dictionary[key] = value, or del dictionary[key] for a null value.
void change_item(Interpreter& interpreter, Dictionary& dictionary, const python::Object& key,
                 const Value& value);

/// A method of a container, e.g. "append" of a list: null if there is none of that name.
Value container_method(Interpreter& interpreter, const Value& self, const std::string& name);
/// The same, as the builtin class that it derives from has it.
Value builtin_method(Interpreter& interpreter, const Value& self, const std::string& name);

/// The Python object that a virtual value stands for, if all its parts are known constants.
python::Object folded(Interpreter& interpreter, const Value& value);
/// The known, hashable object that a value is as a key; refuses graph values.
python::Object key_object(Interpreter& interpreter, const Value& value);
/// Whether a dict takes the two for the same key.
bool same_key(Interpreter& interpreter, PyObject* left, PyObject* right);
/// Iteration over the elements of a container held by value.
std::shared_ptr<Iterator> iterate_elements(std::vector<Value> elements);

/// A generator expression, whose elements are taken one at a time.
std::shared_ptr<Iterator> generate_elements(Interpreter& interpreter,
                                            const std::vector<syntax::Comprehension>& generators,
                                            const syntax::Scope* scope,
                                            std::function<Value()> element);

/// A method of a builtin container, given with its self (`dict.update`, `list.__getitem__`), or
/// dict.fromkeys; null if the callable is none.
Value call_container_function(Interpreter& interpreter, PyObject* callable,
                              const CallArguments& arguments);

// --- operators of sets (sets.cpp); null where they are none
Value set_binary(Interpreter& interpreter, syntax::Operator op, const Value& left,
                 const Value& right);
Value set_binary_in_place(Interpreter& interpreter, syntax::Operator op, const Value& left,
                          const Value& right);
Value set_compare(Interpreter& interpreter, syntax::CompareOperator op, const Value& left,
                  const Value& right);

}  // namespace janus::frontend
