// A recursive function as one of the graph: under what it was made, what its activations are given
// and what they give. For the files that make and call it only:
//
//   recursion          finds that a function is recursive, and calls it
//   recursive_body     interprets the body until nothing new is found
//   outside_changes    what activations change of what was there before
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "frontend/core/frames.h"
#include "frontend/recursion/call_environment.h"
#include "frontend/recursion/outside_places.h"
#include "frontend/recursion/tree_spec.h"
#include "frontend/values/symbolic_list.h"

namespace janus::frontend {

class RecursiveBody;

/// A list of outside that activations make longer: it goes in and comes out.
struct GrowingList {
  std::shared_ptr<Sequence> list;
  python::Object real;  ///< of what is appended to a list that outlives the call: that list
  ElementForm form;
  bool front = false, undecided = false;
  std::shared_ptr<Tensor> memory = std::make_shared<Tensor>();
};

/// Values of the graph that a call is given or gives, and the tensors that they are of.
struct Passed {
  std::vector<graph::Value*> values;
  std::vector<std::shared_ptr<Tensor>> tensors;
  void add(const Flattening& parts) {
    values.insert(values.end(), parts.values.begin(), parts.values.end());
    tensors.insert(tensors.end(), parts.tensors.begin(), parts.tensors.end());
  }
  void add(const Rebuilding& parts) {
    tensors.insert(tensors.end(), parts.tensors.begin(), parts.tensors.end());
  }
};

/// Tensors that a value of the result may share memory with. Those with a number are arguments,
/// other results or lists.
struct ResultAliases {
  std::vector<std::shared_ptr<Tensor>> tensors;
  std::set<size_t> arguments, results, lists;
  bool operator==(const ResultAliases&) const = default;
};

struct RecursiveFunction {
  const syntax::Scope* scope;
  const void* environment;
  std::optional<CallEnvironment> call_environment;  ///< in which it computes what it computes
  Modes modes;                                      ///< it was made in
  std::string name;                                 ///< in the graph
  std::string program_name;                         ///< for reports
  std::vector<std::pair<std::string, TreeSpec>> parameters;  ///< by variable
  std::optional<TreeSpec> result;                            ///< nothing: not known yet
  std::vector<ResultAliases> aliases;                        ///< of each value of the result
  std::vector<GrowingList> growths;
  std::vector<OutsidePlace> places;  ///< that activations change
  bool is_building = true;
  bool at_fixpoint = true;            ///< whether the last interpretation found nothing new
  RecursiveBody* building = nullptr;  ///< while its body is interpreted

  bool grows(const Changeable* object) const {
    return std::any_of(growths.begin(), growths.end(),
                       [&](const GrowingList& growth) { return growth.list.get() == object; });
  }
  [[noreturn]] void refuse(const Frames& frames, const std::string& why) const {
    frames.refuse(ReasonCode::limit, cat("the recursion of ", program_name, ": ", why));
  }
};

}  // namespace janus::frontend
