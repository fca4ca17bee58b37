// Which objects are containers, by their classes, and which containers of the run stand for such.
#pragma once

#include <cstddef>
#include <optional>

#include "frontend/core/frames.h"
#include "speculate/path.h"

namespace janus::frontend {

// --- tuples --------------------------------------------------------------------------------------

/// The names of the fields of a named tuple's class, or of one derived from it that changes nothing
/// of what tuples do (borrowed); null for any other.
PyObject* tuple_fields(PyTypeObject* type);

/// Whether the object is a tuple, or of a class of tuples that hold just their elements:
/// torch.Size, named tuples, torch.return_types.
bool is_tuple_like(PyObject* object);

/// Whether it is a tuple of no class of its own. A view of a dict is none.
bool is_plain_tuple(const Sequence& sequence);

// --- lists ---------------------------------------------------------------------------------------

/// Whether the class is list or derived from it; null is none.
bool is_list_class(PyTypeObject* type);

// --- deques --------------------------------------------------------------------------------------

PyTypeObject* deque_type();

using speculate::is_deque;
bool is_deque(const Sequence& sequence);

// --- dicts ---------------------------------------------------------------------------------------

PyTypeObject* ordered_dict_type();
PyTypeObject* default_dict_type();
PyTypeObject* counter_type();

bool is_counter(PyTypeObject* type);

/// Whether it is what programs see of a dict that they can't change: types.MappingProxyType.
bool is_proxy(const Dictionary& dictionary);

/// Whether the object is a dict, or of a class whose items are read and stored as a dict's.
bool is_plain_dict(PyObject* object);

/// A dict that exists before the call.
struct RealDict {
  PyObject* object = nullptr;
  const Source* source = nullptr;
};

/// The pre-existing dict that the value is or stands for.
std::optional<RealDict> real_dict(const Value& value);

// --- arguments of methods ------------------------------------------------------------------------

/// Refuses keywords and other numbers of arguments.
void expect_count(const Frames& frames, const CallArguments& arguments, size_t least, size_t most);

}  // namespace janus::frontend
