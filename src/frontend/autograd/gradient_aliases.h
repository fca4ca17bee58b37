// Which tensors the gradients that torch.autograd.grad gives may share their memory with.
#pragma once

#include <memory>
#include <vector>

#include "frontend/values/value.h"

namespace janus::frontend {

/// Notes that two tensors share memory: neither may be written as long as both are there.
void relate_both_ways(const std::shared_ptr<Tensor>& one, const std::shared_ptr<Tensor>& other);

/// What a gradient was asked for: a seed for each of the outputs, of which the first came from the
/// program's tensors `given` (a null or None: there is none), the others from its Functions.
struct Seeds {
  const std::vector<graph::Value*>& outputs;
  const std::vector<graph::Value*>& values;
  const std::vector<Value>& given;
};

/// Notes for each target's gradient with which seed and which other gradient it may share its
/// memory, and whether it may be written at all.
void note_aliases(const Seeds& seeds, const std::vector<graph::Value*>& targets,
                  const std::vector<std::shared_ptr<Tensor>>& gradients);

}  // namespace janus::frontend
