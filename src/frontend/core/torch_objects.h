// Torch's classes and constants as Python objects, looked up once.
#pragma once

#include <optional>
#include <string_view>

#include "graph/type.h"
#include "python/object.h"

namespace janus::frontend {

/// Whether the object is a constant of torch: a dtype, device, layout, memory format.
bool is_torch_constant(PyObject* object);

/// Whether objects of the class are such constants (so making one only computes).
bool is_torch_constant_class(PyTypeObject* type);

std::optional<graph::DType> dtype_of(PyObject* object);

python::Object dtype_object(graph::DType dtype);

/// torch, torch.Tensor, torch.Size: looked up once.
PyObject* torch_module();

PyTypeObject* tensor_class();

PyTypeObject* size_class();

PyTypeObject* parameter_class();

/// The object found by a dotted path; null if there is none. What was found once stays found,
/// whatever the program puts in its place.
PyObject* imported(std::string_view path);

}  // namespace janus::frontend
