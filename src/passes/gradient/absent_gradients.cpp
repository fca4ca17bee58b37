// See absent_gradients.h.
#include "passes/gradient/absent_gradients.h"

#include <algorithm>
#include <unordered_set>

#include "graph/constant.h"
#include "graph/rewriter.h"
#include "ops/expression.h"
#include "ops/list.h"
#include "passes/structure/captures.h"
#include "passes/structure/copied.h"

namespace janus::passes {

using graph::Graph;
using graph::Node;
using graph::Value;

namespace {

class AbsentGradients {
 public:
  AbsentGradients(const Graph& backward, const std::vector<bool>& given) : rewriter_(backward) {
    const auto gradients = backward.inputs().last(given.size());
    linear_.insert(gradients.begin(), gradients.end());
    for (size_t i = 0; i < given.size(); ++i)
      if (!given[i]) absent_.insert(gradients[i]);
  }

  Graph run(const graph::Block& body) {
    rewriter_.run([&](const Node& node) {
      // Those in blocks are copied with the node that they belong to.
      return node.parent == &body && leave_out(node);
    });
    return rewriter_.finish();
  }

 private:
  /// Notes what the node's results are; true if it is not computed.
  bool leave_out(const Node& node) {
    std::vector<Value*> gradients = operands(node);
    std::erase_if(gradients, [&](const Value* value) { return !linear_.contains(value); });
    if (gradients.empty()) return false;
    linear_.insert(node.outputs.begin(), node.outputs.end());
    if (!node.blocks.empty()) return false;
    const auto is_absent = [&](const Value* value) { return absent_.contains(value); };
    if (std::ranges::all_of(gradients, is_absent)) return give_zeros(node);
    return node.op == &op::add && std::ranges::any_of(gradients, is_absent) && give_rest(node);
  }

  bool give_zeros(const Node& node) {
    const auto is_tensor = [](const Value* output) {
      return output->type.is_tensor() && graph::is_differentiable(output->type.dtype);
    };
    if (!std::ranges::all_of(node.outputs, is_tensor)) return false;
    for (const Value* output : node.outputs) {
      rewriter_.set(output, ops::zeros(rewriter_.builder(), output->type));
      absent_.insert(output);
    }
    return true;
  }

  /// Of a sum what is not absent, which is not added to zeros: -0.0 stays what it is.
  bool give_rest(const Node& node) {
    const bool is_scaled = graph::constant_number(node.inputs[2]) != 1;
    const Value* rest = node.inputs[absent_.contains(node.inputs[0]) ? 1 : 0];
    if (is_scaled || rest->type != node.output()->type) return false;
    rewriter_.replace(node, {rewriter_[rest]});
    return true;
  }

  graph::Rewriter rewriter_;
  std::unordered_set<const Value*> linear_;  ///< in the gradients
  std::unordered_set<const Value*> absent_;
};

}  // namespace

Graph without_absent_gradients(const Graph& backward, const std::vector<bool>& given) {
  if (std::ranges::find(given, false) == given.end()) return copied(backward);
  return AbsentGradients(backward, given).run(backward.body());
}

}  // namespace janus::passes
