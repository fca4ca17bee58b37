// Where torch's operators take numbers from Python.
#pragma once

#include <cstddef>
#include <string_view>

namespace janus::torch {

/// Whether a number may stand for a tensor among the arguments of "aten::add" or
/// "aten::add.Tensor".
bool allows_numbers_as_tensors(std::string_view name);

/// See TorchServices::takes_number. `name`: "aten::gt".
bool takes_number(std::string_view name, size_t position, std::string_view keyword);

}  // namespace janus::torch
