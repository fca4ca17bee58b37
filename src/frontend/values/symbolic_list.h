// Lists of which only the run knows how many elements they have: their elements are lists of the
// graph, one for each number or tensor that an element is made of. control/symbolic_lists.h has
// what can be done with them.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "frontend/values/value.h"

namespace janus::frontend {

/// What all elements of such a list look like.
struct ElementForm {
  enum class Kind { number, tensor, object, tuple };
  Kind kind = Kind::number;
  graph::Type type;                ///< all but tuple
  bool tracked = false;            ///< tensor: requires a gradient
  Classes classes;                 ///< object: those that were seen
  std::vector<ElementForm> parts;  ///< tuple
  /// Whatever classes objects have: which they are is tested where that counts.
  friend bool operator==(const ElementForm& a, const ElementForm& b) {
    return a.kind == b.kind && a.type == b.type && a.tracked == b.tracked && a.parts == b.parts;
  }
};

/// The grad_fn_name of a list's memory if different operators made its elements.
inline constexpr std::string_view kManyOperators = "many";

struct Rolled {
  TestKey test;  ///< the loop or branch that is followed if the elements are needed one by one
  ElementForm form;
  std::vector<graph::Value*> lists;  ///< one for each leaf of the form
  bool front = false;      ///< it grew at its beginning: the lists begin with its last element
  bool undecided = false;  ///< nothing says yet at which end it grows
  Value length;            ///< null: only the run knows
  std::shared_ptr<Tensor> memory;
};

/// The list object, if its elements are not known one by one.
const Rolled* rolled(const Value& value);

/// Whether the elements of such an object may come to be a symbolic list: a list of the run, or a
/// deque that may become as long as it likes.
inline bool may_roll(const Sequence& sequence) {
  return sequence.is_list && sequence.source == nullptr && (!sequence.type || sequence.most < 0);
}

/// The types of the lists for elements of that form.
std::vector<graph::Type> list_types(const ElementForm& form);

/// Whether tensors in it require a gradient.
bool is_tracked(const ElementForm& form);

}  // namespace janus::frontend
