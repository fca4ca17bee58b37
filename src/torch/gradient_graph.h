// A graph whose results are differentiated outside of it, with what its backward run needs.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/options.h"
#include "execute/program/program.h"
#include "graph/graph.h"
#include "passes/gradient/divide_backward.h"

namespace janus::torch {

/// Beside kSwitches, as graphs are the same either way.
inline constexpr Switch kBucketedBackwardSwitch{
    "bucketed_backward",
    "the backward run is divided where processes share gradients; off: it is one program"};

/// Where the buckets are not known, the sizes that DistributedDataParallel's have unless the
/// program says otherwise: kDefaultFirstBucketBytes, and its usual `bucket_cap_mb`. The number of
/// parts is chosen, not measured: a part costs its entry, and its values leave planned memory.
inline constexpr passes::BucketLimits kPartLimits = {
    .first = int64_t{1} << 20, .rest = int64_t{25} << 20, .most = 10};

/// For tests: backward runs are divided behind so many bytes of gradients, whoever waits for them;
/// 0: where that pays.
inline std::atomic<int64_t> forced_part_bytes = 0;

/// Sets of gradients that come for which a backward run of its own is compiled, beside that for
/// all. Others share one, which is told at run time.
inline constexpr size_t kMostBackwardRuns = 8;  // chosen, not measured

/// The graph's inputs with these numbers, then what it reads of these cells.
std::vector<graph::Value*> differentiable_values(const graph::Graph& graph,
                                                 const std::vector<size_t>& inputs,
                                                 const std::vector<std::string>& cells);

/// Shared by all runs of the graph; programs are compiled at first use.
class GradientGraph {
 public:
  struct Result {
    size_t index = 0;          ///< among the graph's results
    std::string grad_fn_name;  ///< eager's
    /// Where the elements of a list have several: the result that has their numbers in `names`.
    std::optional<size_t> name_numbers = std::nullopt;
    std::vector<std::string> names = {};
  };
  /// `written`: which inputs are tensors that the graph also commits to. `cuts`: results of the
  /// graph at which gradients end, whose gradients are given as well.
  GradientGraph(graph::Graph graph, std::vector<Result> results, std::vector<size_t> inputs,
                std::vector<std::string> cells, std::shared_ptr<const execute::Heap> heap,
                std::set<size_t> written = {}, std::vector<size_t> cuts = {});

  /// The forward graph; call once.
  graph::Graph take_forward() { return std::move(*forward_); }
  size_t result_count() const { return result_count_; }
  /// For each saved value the result of the forward graph that it is.
  const std::vector<size_t>& saved_results() const { return saved_results_; }
  /// A saved value that is a view of what the run was given: whoever writes to that changes it.
  struct SavedView {
    size_t saved = 0;                            ///< among `saved_results()`
    std::optional<size_t> input = std::nullopt;  ///< of the graph, or
    std::string cell = {};
  };
  const std::vector<SavedView>& saved_views() const { return saved_views_; }
  /// For each value that can't be had again (what was drawn, what was overwritten) the result of
  /// the forward graph that it is.
  const std::vector<size_t>& unrepeatable_results() const { return unrepeatable_results_; }
  bool is_written(size_t input) const { return written_.contains(input); }

  const std::vector<Result>& results() const { return results_; }
  const std::vector<size_t>& inputs() const { return inputs_; }
  const std::vector<std::string>& cells() const { return cells_; }
  const std::vector<size_t>& cuts() const { return cuts_; }
  /// Which of `results()` eager's gradient saves: a gradient's own gradient comes to them by name.
  const std::vector<size_t>& kept_results() const { return kept_results_; }

  /// Whether a gradient of differentiable result `result` can flow to differentiable input, cell or
  /// cut `target`, counted as backward() gives their gradients.
  bool reaches(size_t result, size_t target) const { return reaches_[result][target]; }

  /// Finds `is_plain`. `written`: the graph before composite operators were decomposed, as eager's
  /// gradients are of them. Where it is not called, no gradient is.
  void find_plain(const graph::Graph& written);
  /// Whether eager's gradient of the result by the target, as `reaches` numbers them, depends on
  /// exactly those values that ours does.
  bool is_plain(size_t result, size_t target) const {
    return !plain_.empty() && plain_[result][target];
  }

  /// Whether the gradients of the two differentiable results go through a node for which eager
  /// saves anything: what one backward() frees, the other's needs.
  bool shares_saved(size_t result, size_t other) const { return shares_saved_[result][other]; }

  /// A result that eager's gradient keeps: written before backward() comes, it makes that raise.
  struct Checked {
    size_t result = 0;  ///< among `results()`
    /// The result of the graph that says whether it is kept; none: it is.
    std::optional<size_t> flag = std::nullopt;
  };
  const std::vector<Checked>& checked_results() const { return checked_results_; }

  struct Backward {
    std::unique_ptr<execute::Program> program;
    std::vector<bool> uses;  ///< which of the saved values
    /// Behind all else it takes a b1[] for each result: whether its gradient comes.
    bool is_told = false;
  };
  /// Takes the saved values, then one gradient for each differentiable result; gives the gradients
  /// of the differentiable inputs, then cells, then cuts.
  /// `given`: to which results a gradient comes; the others' are not looked at.
  const Backward& backward(const std::vector<bool>& given);

  /// Divides the backward run (passes/gradient/divide_backward.h) as it is asked for first.
  /// `order`: in which eager completes the gradients; `leaves`: which of them are accumulated;
  /// `numbers`: the buckets in which they are sent, empty if that is not known.
  void divide(const std::vector<size_t>& order, const std::vector<bool>& leaves,
              const passes::BucketNumbers& numbers);
  /// Whether divide() was called.
  bool is_divided() const { return is_divided_; }
  /// The parts, which do not change any more; empty: it is not divided.
  const std::vector<passes::BackwardPart>& parts() const { return parts_; }
  /// How many parts there are at last; 1: it is not divided.
  size_t part_count() const { return part_count_; }
  execute::Program& part(size_t number);
  /// How many values are numbered in parts().
  size_t value_count() const { return value_count_; }

  /// Whether `recomputed` needs the findings of the run: it reads objects, or draws in a branch,
  /// loop or function.
  bool needs_findings() const { return draws_in_block_ || reads_heap_; }
  /// The gradients as a function of the graph's own inputs and cells, which can be differentiated
  /// again: takes the graph's inputs, then the unrepeatable values, then the cuts' results, then
  /// those of the kept results, then one gradient for each differentiable result. Null where an
  /// operator has no second gradient, draws what its operands get gradients of, or a clock is read
  /// in a branch, loop or function.
  /// `given`: to which results a gradient comes; nothing depends on the others. Of gradients all
  /// count: eager's own hand on zeros, as of x.pow(1), where nothing depends on a value.
  GradientGraph* recomputed(const std::vector<bool>& given);
  /// The forward program of a graph that `recomputed` gave.
  execute::Program& program();

 private:
  void find_unrepeatable();
  void return_unrepeatable();
  void find_reach();
  void find_shared_saved();
  void find_kept_results();
  void find_checked_results();
  void find_leaves(const graph::Graph& forward, size_t saved_count);
  void find_saved_views(const graph::Graph& forward, size_t saved_count);
  graph::Graph gradients_of_inputs(const std::vector<bool>& given) const;
  Backward compiled_backward(graph::Graph graph, bool is_told) const;
  static graph::Graph with_kept_results(const graph::Graph& gradients, size_t count);

  graph::Graph graph_;  ///< decomposed
  std::vector<Result> results_;
  std::vector<size_t> inputs_;
  std::vector<std::string> cells_;
  std::set<size_t> written_;
  std::vector<size_t> cuts_;
  std::vector<graph::Value*> ends_;  ///< what goes on from the cuts
  std::vector<size_t> kept_results_;
  std::vector<Checked> checked_results_;
  std::shared_ptr<const execute::Heap> heap_;
  /// Of what the results depend on: contents at entry of what is written, and draws, unless some
  /// are in blocks. Then all draws are made again.
  std::vector<graph::Value*> unrepeatable_;
  std::unordered_set<const graph::Node*> unused_;  ///< the results do not depend on them
  /// Of what the results depend on; functions are blocks too.
  bool draws_in_block_ = false, reads_heap_ = false, reads_clock_in_block_ = false;
  std::vector<size_t> unrepeatable_results_;
  graph::DType default_dtype_;  ///< when the graph was generated
  std::unique_ptr<graph::Graph> forward_, backward_graph_;
  size_t result_count_ = 0;
  std::vector<size_t> saved_results_;
  std::vector<SavedView> saved_views_;
  std::vector<std::vector<bool>> reaches_;       ///< by result, by target
  std::vector<std::vector<bool>> plain_;         ///< by result, by target
  std::vector<std::vector<bool>> shares_saved_;  ///< by results
  std::mutex mutex_;
  std::map<std::vector<bool>, Backward> backward_;  ///< by what is given
  Backward told_backward_;
  std::unique_ptr<execute::Program> program_;
  /// For each input of the backward run the target whose memory it is.
  std::vector<std::optional<size_t>> leaf_of_input_;
  bool knows_leaves_ = true;  ///< no other input may lie in a target's memory
  std::once_flag divided_;
  std::vector<passes::BackwardPart> parts_;
  std::vector<std::unique_ptr<execute::Program>> part_programs_;
  std::atomic<bool> is_divided_ = false;
  std::atomic<size_t> part_count_ = 1;
  size_t value_count_ = 0;
  bool is_of_gradients_ = false;  ///< `recomputed` gave it
  bool has_no_second_ = false;    ///< whatever is given
  /// By what is given; null: it was tried.
  std::map<std::vector<bool>, std::unique_ptr<GradientGraph>> recomputed_;
};

}  // namespace janus::torch
