// NumPy's arrays whose elements a graph reads: what they hold as the run begins, as a tensor. The
// memory may be anybody's, a tensor's too, so the entry copies it.
#pragma once

#include "python/object.h"

namespace janus::speculate {

/// Whether it is a numpy.ndarray, of no subclass.
bool is_array(PyObject* object);

/// torch.tensor(array), a new reference. Null: no tensor holds such elements; an exception is set.
PyObject* contents_of_array(PyObject* array);

}  // namespace janus::speculate
