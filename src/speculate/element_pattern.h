// The assumptions about each element of a list or tuple whose length is a symbolic dimension.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "graph/type.h"
#include "python/object.h"
#include "speculate/tensor_access.h"

namespace janus::speculate {

struct ElementPattern {
  enum class Kind { integer, floating, boolean, tensor, tuple };
  Kind kind = Kind::integer;
  TensorPattern tensor;
  std::vector<ElementPattern> parts;  ///< of a tuple
};

/// A path to a part of an element: the index in each nested tuple; empty for the element itself.
using ElementPart = std::vector<size_t>;

inline PyObject* part_of(PyObject* element, std::span<const size_t> part) {
  for (const size_t index : part)
    element = PyTuple_GET_ITEM(element, static_cast<Py_ssize_t>(index));
  return element;
}

/// Calls `visit` with the pattern and path of each part that is no tuple.
template <class Visit>
void for_each_leaf(const ElementPattern& pattern, Visit&& visit, const ElementPart& at = {}) {
  if (pattern.kind != ElementPattern::Kind::tuple) return visit(pattern, at);
  for (size_t i = 0; i < pattern.parts.size(); ++i) {
    ElementPart part = at;
    part.push_back(i);
    for_each_leaf(pattern.parts[i], visit, part);
  }
}

/// Calls `visit` with each tensor in the elements of a list that matches the pattern.
template <class Visit>
void for_each_tensor(const ElementPattern& pattern, PyObject* list, Visit&& visit) {
  for_each_leaf(pattern, [&](const ElementPattern& leaf, const ElementPart& part) {
    if (leaf.kind != ElementPattern::Kind::tensor) return;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(list); ++i)
      visit(part_of(PySequence_Fast_GET_ITEM(list, i), part));
  });
}

/// The number of these tensors.
inline size_t count_tensors(const ElementPattern& pattern, PyObject* list) {
  size_t count = 0;
  for_each_leaf(pattern, [&](const ElementPattern& leaf, const ElementPart&) {
    if (leaf.kind == ElementPattern::Kind::tensor)
      count += static_cast<size_t>(PySequence_Fast_GET_SIZE(list));
  });
  return count;
}

}  // namespace janus::speculate
