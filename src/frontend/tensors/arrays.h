// NumPy's arrays. One that the run makes of a tensor shares its memory, so it is made behind the
// run, of the tensor as the run leaves it, and nothing is computed with it in between. Of one that
// existed before, the run reads a copy that the entry makes.
#pragma once

#include "frontend/values/value.h"

namespace janus::frontend {

class Interpreter;

/// What `tensor.numpy()` gives.
Value array_of(const std::shared_ptr<Tensor>& tensor);

/// The tensor of such an array; null: the instance is of another class.
std::shared_ptr<Tensor> tensor_of_array(const Instance& instance);

/// What an array that existed before the run holds; nobody else has this tensor. Null: the value is
/// no such array, or the run may have changed the memory that it is on.
std::shared_ptr<Tensor> contents_of_array(Interpreter& interpreter, const Value& value);

/// The tensor that torch makes of such an array in a key; null: it is none, or torch takes it
/// otherwise. `is_alone`: it is the whole key, where an array of rows may stand for their tuple.
std::shared_ptr<Tensor> indices_of_array(Interpreter& interpreter, const Value& part,
                                         bool is_alone);

}  // namespace janus::frontend
