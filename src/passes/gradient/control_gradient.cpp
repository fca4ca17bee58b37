// See control_gradient.h.
#include "passes/gradient/control_gradient.h"

#include <algorithm>

#include "base/check.h"
#include "ops/container.h"
#include "ops/list.h"
#include "passes/gradient/active_nodes.h"
#include "passes/gradient/block_reversal.h"
#include "passes/reach/reachability.h"
#include "passes/structure/captures.h"

namespace janus::passes {

using graph::Block;
using graph::Builder;
using graph::Node;
using graph::Type;
using graph::Value;

namespace {

Value* add_output(graph::Graph& graph, Node& node, Type type, std::string name) {
  Value* value = graph.new_value(std::move(type), std::move(name));
  value->definition = &node;
  value->index = static_cast<uint32_t>(node.outputs.size());
  node.outputs.push_back(value);
  return value;
}

/// What the node uses from outside and somebody wants the gradient of. (A loop's start values are
/// among them only if its blocks use them as well.)
std::vector<Value*> captured_values(const Node& node, const GradientSums& sums) {
  std::vector<Value*> captured;
  for (Value* value : outer_values(node))
    if (sums.needs(value)) captured.push_back(value);
  return captured;
}

// ---- if ---------------------------------------------------------------------------------------

class BranchGradient {
 public:
  BranchGradient(Node& node, GradientSums& sums, BlockDifferentiator& blocks)
      : node_(node), sums_(sums), blocks_(blocks), graph_(sums.builder().graph()) {
    captured_ = captured_values(node, sums);
    for (const Value* value : captured_) before_.push_back(sums.gradient(value));
  }

  void run() {
    Node& backward = *sums_.builder().append_unchecked(op::if_, node_.inputs, {}, {});
    BlockReversal first(graph_, backward, *node_.blocks[0], blocks_);
    BlockReversal second(graph_, backward, *node_.blocks[1], blocks_);
    reverse(first);
    reverse(second);
    choose_results();
    if (chosen_.empty()) {
      sums_.builder().block().nodes.pop_back();
      return;
    }
    give_results(first, 0);
    give_results(second, 1);
    Value* frame = keep_frame(first, second);
    first.connect(frame);
    second.connect(frame);
    for (const size_t i : chosen_) {
      Value* gradient = add_output(graph_, backward, captured_[i]->type, {});
      sums_.replace(captured_[i], gradient);
    }
  }

 private:
  void reverse(BlockReversal& side) {
    std::vector<Value*> outputs, seeds;
    for (size_t i = 0; i < node_.outputs.size(); ++i) {
      Value* seed = sums_.gradient(node_.outputs[i]);
      if (seed == nullptr) continue;
      outputs.push_back(side.forward().results[i]);
      seeds.push_back(seed);
    }
    gradients_.push_back(side.run(outputs, seeds, captured_, before_));
  }

  /// The values that at least one side has a gradient for.
  void choose_results() {
    for (size_t i = 0; i < captured_.size(); ++i)
      if (gradients_[0][i] != before_[i] || gradients_[1][i] != before_[i]) chosen_.push_back(i);
  }

  void give_results(BlockReversal& side, size_t index) {
    for (const size_t i : chosen_) {
      Value* gradient = gradients_[index][i];
      if (gradient == nullptr) gradient = ops::zero_gradient(side.builder(), captured_[i]->type);
      side.block().results.push_back(gradient);
    }
  }

  Value* keep_frame(BlockReversal& first, BlockReversal& second) {
    const bool nothing = first.find_saved().empty();
    if (second.find_saved().empty() && nothing) return nullptr;
    for (BlockReversal* side : {&first, &second}) side->forward().results.push_back(side->pack());
    return add_output(graph_, node_, Type::frame(), "frame");
  }

  Node& node_;
  GradientSums& sums_;
  BlockDifferentiator& blocks_;
  graph::Graph& graph_;
  std::vector<Value*> captured_;
  std::vector<Value*> before_;                  ///< gradients of the captured values so far
  std::vector<std::vector<Value*>> gradients_;  ///< by side: of the captured values
  std::vector<size_t> chosen_;                  ///< indices of captured values
};

// ---- while ------------------------------------------------------------------------------------

class LoopGradient {
 public:
  LoopGradient(Node& node, GradientSums& sums, BlockDifferentiator& blocks)
      : node_(node),
        sums_(sums),
        blocks_(blocks),
        graph_(sums.builder().graph()),
        body_(*node.blocks[1]) {}

  void run() {
    captured_ = captured_values(node_, sums_);
    find_active();
    if (active_.empty() && captured_.empty()) return;
    std::vector<Value*> start = start_values();
    Node& backward = *sums_.builder().append_unchecked(op::while_, start, {}, {});
    backward.add_block();  // the condition, filled in last
    BlockReversal reversal(graph_, backward, body_, blocks_);
    reverse(reversal);
    const bool counts = reversal.find_saved().empty();
    Value* kept = counts ? count_iterations() : push_frames(reversal);
    take_iterations(reversal, backward, kept);
    for (const Value* input : backward.inputs) add_output(graph_, backward, input->type, {});
    hand_on(backward);
  }

 private:
  /// The carried values that depend on something whose gradient is wanted.
  std::vector<bool> find_depending() const {
    const size_t count = node_.inputs.size();
    std::vector<bool> depends(count);
    std::vector<Value*> targets = captured_;
    const auto add = [&](size_t k) {
      depends[k] = true;
      targets.push_back(body_.parameters[k]);
    };
    for (size_t k = 0; k < count; ++k)
      if (sums_.needs(node_.inputs[k])) add(k);
    for (bool changed = true; changed;) {
      changed = false;
      const ActiveNodes active(graph_.value_count(), body_.results, targets, &body_);
      for (size_t k = 0; k < count; ++k) {
        if (depends[k] || !carries_gradient(node_.inputs[k]->type) ||
            !active.depends(body_.results[k]))
          continue;
        add(k);
        changed = true;
      }
    }
    return depends;
  }

  /// Of those, the carried values that a gradient comes to, from behind the loop or from a later
  /// iteration; and the values from outside that one comes to.
  void find_active() {
    const std::vector<bool> depends = find_depending();
    std::vector<bool> receives(depends.size());
    std::vector<Value*> results;
    const auto add = [&](size_t k) {
      receives[k] = true;
      results.push_back(body_.results[k]);
    };
    for (size_t k = 0; k < depends.size(); ++k)
      if (depends[k] && sums_.gradient(node_.outputs[k]) != nullptr) add(k);
    Reached reached;
    for (bool changed = true; changed;) {
      changed = false;
      reached = reached_from(results, Paths::any, &body_);
      for (size_t k = 0; k < depends.size(); ++k) {
        if (!depends[k] || receives[k] || !reached.contains(body_.parameters[k])) continue;
        add(k);
        changed = true;
      }
    }
    for (size_t k = 0; k < depends.size(); ++k)
      if (receives[k]) active_.push_back(k);
    std::erase_if(captured_, [&](Value* value) { return !reached.contains(value); });
  }

  /// What the backward loop begins with: the gradients of the loop's results, then those of the
  /// captured values so far.
  std::vector<Value*> start_values() {
    std::vector<Value*> start;
    const auto add = [&](const Value* value) {
      Value* gradient = sums_.gradient(value);
      start.push_back(gradient != nullptr ? gradient
                                          : ops::zero_gradient(sums_.builder(), value->type));
    };
    for (const size_t k : active_) add(node_.outputs[k]);
    for (const Value* value : captured_) add(value);
    return start;
  }

  /// Fills the backward body: its parameters are those of start_values().
  void reverse(BlockReversal& reversal) {
    Block& block = reversal.block();
    std::vector<Value*> outputs, seeds, targets, sums;
    for (const size_t k : active_) {
      outputs.push_back(body_.results[k]);
      seeds.push_back(add_parameter(block, *node_.inputs[k]));
      targets.push_back(body_.parameters[k]);
      sums.push_back(nullptr);
    }
    for (Value* value : captured_) {
      targets.push_back(value);
      sums.push_back(add_parameter(block, *value));
    }
    block.results = reversal.run(outputs, seeds, targets, sums);
    for (size_t i = 0; i < targets.size(); ++i)
      if (block.results[i] == nullptr)
        block.results[i] = ops::zero_gradient(reversal.builder(), targets[i]->type);
  }

  Value* add_parameter(Block& block, const Value& gradient_of) {
    return graph_.new_parameter(block, gradient_of.type,
                                gradient_of.name.empty() ? "" : "d_" + gradient_of.name);
  }

  /// A builder for nodes in front of the forward loop; flush() puts them there.
  class InFront {
   public:
    InFront(graph::Graph& graph, Node& loop) : loop_(loop), builder_(graph, *loop.parent) {
      const auto& nodes = loop.parent->nodes;
      count_ = nodes.size();
    }
    Builder& builder() { return builder_; }
    void flush() {
      auto& nodes = loop_.parent->nodes;
      const auto place = std::ranges::find(nodes, &loop_);
      TORCHJANUS_CHECK(place != nodes.end(), "while: the loop is not in its block");
      std::rotate(place, nodes.begin() + static_cast<std::ptrdiff_t>(count_), nodes.end());
    }

   private:
    Node& loop_;
    Builder builder_;
    size_t count_;
  };

  /// One more value that the forward loop carries; gives what it is behind the loop. `next` builds
  /// its new value in the body.
  template <class Next>
  Value* carry(Value* start, const std::string& name, Next&& next) {
    node_.inputs.push_back(start);
    graph_.new_parameter(*node_.blocks[0], start->type, name);
    Value* value = graph_.new_parameter(body_, start->type, name);
    Builder builder(graph_, body_);
    body_.results.push_back(next(builder, value));
    return add_output(graph_, node_, start->type, name);
  }

  Value* count_iterations() {
    InFront front(graph_, node_);
    Value* zero = front.builder().constant(int64_t{0});
    front.flush();
    return carry(zero, "iterations", [](Builder& builder, Value* count) {
      return op::scalar_add(builder, {count, builder.constant(int64_t{1})});
    });
  }

  Value* push_frames(BlockReversal& reversal) {
    InFront front(graph_, node_);
    Value* empty = front.builder()
                       .append_unchecked(op::list_new, {}, {}, {Type::list(Type::frame())})
                       ->output();
    front.flush();
    Value* frame = reversal.pack();
    return carry(empty, "frames", [&](Builder& builder, Value* frames) {
      return builder.append(op::list_push, {frames, frame})->output();
    });
  }

  /// Lets the backward loop run as often as the forward loop did, and hands each iteration its
  /// frame.
  void take_iterations(BlockReversal& reversal, Node& backward, Value* kept) {
    backward.inputs.push_back(kept);
    Block& condition = *backward.blocks[0];
    for (const Value* input : backward.inputs) graph_.new_parameter(condition, input->type);
    Builder test(graph_, condition);
    Value* left = condition.parameters.back();
    const bool counts = left->type.kind == Type::Kind::i64;
    if (!counts) left = test.append(op::list_size, {left})->output();
    condition.results = {op::scalar_gt(test, {left, test.constant(int64_t{0})})};

    Block& block = reversal.block();
    Value* rest = graph_.new_parameter(block, kept->type, kept->name);
    Builder& builder = reversal.builder();
    if (counts) {
      block.results.push_back(op::scalar_sub(builder, {rest, builder.constant(int64_t{1})}));
      reversal.connect(nullptr);
      return;
    }
    Node* pop = builder.append(op::list_pop, {rest});
    block.nodes.pop_back();
    block.results.push_back(pop->outputs[0]);
    pop->outputs[1]->name = "frame";
    reversal.connect(pop->outputs[1]);
    block.nodes.insert(block.nodes.begin(), pop);
  }

  void hand_on(Node& backward) {
    for (size_t i = 0; i < captured_.size(); ++i)
      sums_.replace(captured_[i], backward.outputs[active_.size() + i]);
    for (size_t i = 0; i < active_.size(); ++i) {
      const Value* start = node_.inputs[active_[i]];
      if (sums_.needs(start)) sums_.add(start, backward.outputs[i]);
    }
  }

  Node& node_;
  GradientSums& sums_;
  BlockDifferentiator& blocks_;
  graph::Graph& graph_;
  Block& body_;
  std::vector<Value*> captured_;
  std::vector<size_t> active_;  ///< indices of carried values
};

}  // namespace

bool differentiate_control(Node& node, GradientSums& sums, BlockDifferentiator& blocks,
                           FunctionVersions& versions) {
  if (node.op == &op::if_) {
    BranchGradient(node, sums, blocks).run();
    return true;
  }
  if (node.op == &op::while_) {
    LoopGradient(node, sums, blocks).run();
    return true;
  }
  if (node.op == &op::call) {
    versions.differentiate(node, sums, blocks);
    return true;
  }
  return false;
}

}  // namespace janus::passes
