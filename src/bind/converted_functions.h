// The plain Python functions that Function objects stand for.
#pragma once

#include "python/object.h"

namespace janus::bind {

/// A Function was made of the plain function, or is gone. Several may be made of one.
void note_converted(PyObject* function);
void forget_converted(PyObject* function);

/// Whether a Function stands for that plain Python function.
bool is_converted(PyObject* function);

}  // namespace janus::bind
