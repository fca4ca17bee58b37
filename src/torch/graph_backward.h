// The C++ autograd node behind the results of a converted function: it keeps what the backward
// graph needs and runs it when backward() reaches it.
#pragma once

#include <torch/csrc/autograd/function.h>

#include <array>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "execute/library/findings.h"
#include "execute/values/slot.h"
#include "python/lock.h"
#include "torch/adding_up.h"
#include "torch/backward_ways.h"
#include "torch/divided_backward.h"
#include "torch/kept.h"
#include "torch/version.h"

namespace janus::torch {

class GraphBackward final : public ::torch::autograd::Node, public MayGoApart {
 public:
  using Edge = ::torch::autograd::Edge;
  using Gradients = ::torch::autograd::variable_list;
  using Slots = std::span<const execute::Slot>;

  /// `edges`: one for each differentiable input and cell, then one for each result on the way.
  /// `wanted`: which of these targets have an edge, its own or one of the chain's. `chain`: the
  /// nodes of the other parts, if the backward run is divided.
  GraphBackward(const BackwardWays& ways, std::vector<bool> wanted,
                ::torch::autograd::edge_list edges, std::vector<NodePointer<BucketBackward>> chain);
  /// The engine, which has not got Python's lock, may be the last to refer to it.
  ~GraphBackward() override;

  std::string name() const override { return whole_.graph->results().front().grad_fn_name; }

  /// Result number `index` has that node for its grad_fn, which leads here.
  void name_result(size_t index, const NodePointer<::torch::autograd::Node>& named);

  /// Keeps what backward needs. The results have this node as their grad_fn by now.
  void keep(Slots inputs, std::span<const std::string> cell_names, Slots cells, Slots results,
            const std::shared_ptr<execute::Findings>& findings);

  /// The engine comes here without any gradient where that went through the whole run by way of
  /// another result's node, which leads here too.
  Gradients apply(Gradients&& gradients) override;

  /// Eager frees what the results at hand need, and others may go their own ways still.
  void release_variables() override;

  std::span<const Edge> cuts() const override;

 private:
  using Way = BackwardWay;

  std::array<std::vector<Kept>*, 11> kept();
  /// Holds Python's lock where objects of Python's are kept.
  std::unique_ptr<python::WithLock> lock_python();
  /// The grad_fn that the program's result has, by which messages name it.
  NodePointer<::torch::autograd::Node> node_of(size_t result);

  bool goes_apart() const;
  /// Puts zeros where a result has no gradient; gives which have one.
  std::vector<bool> complete(Gradients& gradients) const;
  /// By target. What only results without a gradient lead to has none, as in eager.
  std::vector<bool> reached_from(const Way& way, const std::vector<bool>& given) const;

  /// Whether the backward() at hand goes to all targets that these results lead to.
  bool is_all_asked_for(const std::vector<bool>& given) const;
  /// For release_variables.
  void note_run(const std::vector<bool>& given, bool is_whole);
  /// The whole run goes through those of the nodes in front, to which no gradient comes then.
  void go_through(const std::vector<bool>& given);
  void be_gone_through(size_t result);
  /// From which results the backward() at hand went on in here; forgets it.
  std::vector<bool> take_gone_through();
  /// Whether backward() has run through anything that the gradient of the result needs, too.
  bool is_freed(size_t result) const;
  void check_not_freed(const std::vector<bool>& given) const;
  /// Raises if a result was changed that eager's gradient keeps.
  void check_kept(const Way& way, const std::vector<bool>& given);

  /// With create_graph, and of batched gradients, everything is computed here, and the other nodes
  /// hand it out.
  Gradients apply_first_part(const Gradients& gradients, const std::vector<bool>& given);
  Gradients apply_whole(const Way& way, const Gradients& gradients, const std::vector<bool>& given);
  /// One sample after the other.
  Gradients apply_batched(const Way& way, const Gradients& gradients,
                          const std::vector<bool>& given, int64_t level);
  Gradients run_backward(const Way& way, const Gradients& gradients,
                         const std::vector<bool>& given);
  /// create_graph: computes everything again from the inputs, as a function of them and of the
  /// incoming gradients that has an autograd node of its own.
  /// What only other results than the given ones lead to gets no gradient of these gradients.
  Gradients apply_differentiably(const Way& way, GradientGraph& recomputed,
                                 const Gradients& gradients, const std::vector<bool>& given);
  /// create_graph where that can't be had: gradients that can't be differentiated. Who
  /// only asks for them, as some do of all, has them.
  Gradients apply_once(const Way& way, const Gradients& gradients, const std::vector<bool>& given);

  std::vector<execute::Slot> unpacked(const std::vector<Kept>& all);
  /// What is not used may have been changed, as in eager: only gradients need it that do not come.
  std::vector<execute::Slot> unpacked(const Way& way, const std::vector<bool>& uses);
  /// The node's own results, with the grad_fn that the program's have.
  void add_results(const Way& way, std::vector<execute::Slot>& slots);
  /// One for each target; the way through the whole run gives none for the cuts.
  Gradients taken(const Way& way, std::span<execute::Slot> results) const;

  Way whole_, apart_;
  std::vector<bool> wanted_;                        ///< by target
  bool is_divided_;                                 ///< then the whole way is the only one
  std::vector<NodePointer<BucketBackward>> chain_;  ///< until they have what they keep
  std::map<size_t, WeakNodePointer<::torch::autograd::Node>> named_;  ///< by result
  std::mutex mutex_;
  /// To which results a gradient came in the last run; empty if that was none, or went to some of
  /// the targets only. Then eager frees other nodes' values only.
  std::vector<bool> run_for_;
  /// Results from which another node's run went on in here, in the backward() of that number. If an
  /// exception ends that, the engine does not come here.
  std::vector<bool> gone_through_;
  int gone_through_in_ = -1;
  std::set<size_t> freed_;    ///< those whose backward() has run
  bool is_released_ = false;  ///< nothing is kept any more; results that need nothing go on
  std::vector<Kept> read_, inputs_, cells_;
  std::shared_ptr<execute::Findings> findings_;  ///< with the tensors in `read_`
  std::vector<std::string> cell_names_;
};

/// What attach_node is told of results that are gradients: by result, whether it requires a
/// gradient only where it depends on something that does. Others do in any case, as eager's
/// gradients hand on zeros. Empty: all do.
using IfItDepends = std::vector<bool>;

/// The differentiable results of `ways` lead to a node of their own from now on, and that to what
/// the run was given: `inputs`, and `cells` by their names. `findings`: the run's, where gradients'
/// own gradients need them.
void attach_node(const BackwardWays& ways, std::span<const execute::Slot> inputs,
                 std::span<const std::string> cell_names, std::span<const execute::Slot> cells,
                 std::span<execute::Slot> results,
                 const std::shared_ptr<execute::Findings>& findings,
                 const IfItDepends& if_it_depends = {});

}  // namespace janus::torch
