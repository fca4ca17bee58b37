// What ops/reference.h is put together from: reference implementations by their operators.
#pragma once

#include "graph/interpreter.h"

namespace janus::ops {

/// Operators that run blocks.
void add_structure(graph::Reference::Functions& functions);
/// Operators that read Python's objects.
void add_objects(graph::Reference::Functions& functions);
/// Operators of frames and lists.
void add_containers(graph::Reference::Functions& functions);

}  // namespace janus::ops
