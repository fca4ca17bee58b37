// Whether an operator that writes a tensor in place reads the same memory as another element.
//
// In the graph it would read what was there before. Eager raises where it sees that, and else gives
// what the order of its loops makes of it.
#pragma once

#include <memory>
#include <span>

#include "frontend/values/value.h"
#include "graph/op.h"

namespace janus::frontend {

class Frames;

/// Whether two views of the same memory surely have no element in common.
bool are_apart(const Tensor& one, const Tensor& other);

/// Refuses unless each operand surely has no memory in common with what is written `by` a node, or,
/// of an element-wise operator, is the same element by element.
void refuse_overlap(const Frames& frames, const Tensor& written, const graph::Node& by,
                    std::span<const std::shared_ptr<Tensor>> operands);
/// The operands are the tensors of a call, from positional argument `first` on.
void refuse_overlap(const Frames& frames, const Tensor& written, const graph::Node& by,
                    const CallArguments& operands, size_t first = 0);

}  // namespace janus::frontend
