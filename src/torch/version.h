// What differs in torch's C++ interface between the versions that we are built with: 2.11 to 2.15.
// The rest of the sources is the same for all of them, and asks here. Each difference has the
// version that brought it, and the reason. What storages differ in is in materializer.h, and what
// eager computes differently in eager_rules.h.
#pragma once

#include <ATen/core/TensorBase.h>
#include <c10/util/intrusive_ptr.h>
#include <torch/csrc/autograd/function.h>
#include <torch/headeronly/version.h>

#include <memory>
#include <utility>

#define TORCHJANUS_TORCH_SINCE_2_13 (TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 13)

namespace janus::torch {

constexpr bool since(int minor) { return TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= minor; }

// --- dispatch ------------------------------------------------------------------------------------

/// Whether operators come to Python's modes and subclasses before they come to the key by which
/// they are intercepted. Until 2.12 they come there later, and within Python not to that key.
constexpr bool kPythonComesFirst = since(13);

// --- tensors -------------------------------------------------------------------------------------

/// The elements, to read. Until 2.12 torch's function of that purpose has a constraint among its
/// template's parameters. gcc, which made torch, and clang write such a symbol differently.
template <class Element>
const Element* elements_of(const at::TensorBase& tensor) {
  return static_cast<const Element*>(tensor.const_data_ptr());
}

// --- nodes of autograd ---------------------------------------------------------------------------

// Since 2.13 they count their references themselves, as tensors do, and keep their Python object in
// a slot like a tensor's.
#if TORCHJANUS_TORCH_SINCE_2_13
template <class Node>
using NodePointer = c10::intrusive_ptr<Node>;
template <class Node>
using WeakNodePointer = c10::weak_intrusive_ptr<Node>;

template <class Node, class... Arguments>
NodePointer<Node> make_node(Arguments&&... arguments) {
  return c10::make_intrusive<Node>(std::forward<Arguments>(arguments)...);
}

inline bool has_python_object(const ::torch::autograd::Node& node) {
  return node.pyobj_slot()->load_pyobj() != nullptr;
}
#else
template <class Node>
using NodePointer = std::shared_ptr<Node>;
template <class Node>
using WeakNodePointer = std::weak_ptr<Node>;

/// Torch's own deleter ends long chains of nodes one after the other, and not by recursion.
template <class Node, class... Arguments>
NodePointer<Node> make_node(Arguments&&... arguments) {
  return {new Node(std::forward<Arguments>(arguments)...), ::torch::autograd::deleteNode};
}

inline bool has_python_object(const ::torch::autograd::Node& node) {
  return node.pyobj() != nullptr;
}
#endif

// --- process groups ------------------------------------------------------------------------------

// Since 2.13 what gathers and scatters single tensors has these names; `Group` is c10d's class.

template <class Group, class... Arguments>
auto all_gather_single(Group& group, Arguments&... arguments) {
  if constexpr (requires { group.all_gather_single(arguments...); })
    return group.all_gather_single(arguments...);
  else
    return group._allgather_base(arguments...);
}

template <class Group, class... Arguments>
auto reduce_scatter_single(Group& group, Arguments&... arguments) {
  if constexpr (requires { group.reduce_scatter_single(arguments...); })
    return group.reduce_scatter_single(arguments...);
  else
    return group._reduce_scatter_base(arguments...);
}

}  // namespace janus::torch
