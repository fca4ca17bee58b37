// See absent_gradients.h.
#include "passes/gradient/absent_gradients.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "graph/constant.h"
#include "graph/rewriter.h"
#include "ops/expression.h"
#include "ops/list.h"
#include "passes/structure/captures.h"
#include "passes/structure/copied.h"

namespace janus::passes {

using graph::DType;
using graph::Graph;
using graph::Node;
using graph::Type;
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

class AbsenceAtRunTime {
 public:
  AbsenceAtRunTime(const Graph& backward, size_t count) : rewriter_(backward) {
    const auto gradients = backward.inputs().last(count);
    for (size_t i = 0; i < count; ++i) {
      std::vector<bool> own(count);
      own[i] = true;
      flags_[own] = rewriter_.builder().input(Type::tensor(DType::b1, {}), "comes");
      sources_[gradients[i]] = std::move(own);
    }
  }

  Graph run(const graph::Block& body) {
    rewriter_.run([&](const Node& node) { return node.parent == &body && keep_absent(node); });
    return rewriter_.finish();
  }

 private:
  using Sources = std::vector<bool>;  ///< the gradients that a value is linear in

  bool keep_absent(const Node& node) {
    std::vector<Value*> gradients = operands(node);
    std::erase_if(gradients, [&](const Value* value) { return !sources_.contains(value); });
    if (gradients.empty()) return false;
    Sources sources = sources_.at(gradients.front());
    for (const Value* gradient : gradients)
      for (size_t i = 0; i < sources.size(); ++i)
        if (sources_.at(gradient)[i]) sources[i] = true;
    for (const Value* output : node.outputs) sources_[output] = sources;
    if (!node.blocks.empty() || gives_zeros_of_zeros(node)) return false;
    rewriter_.copy(node);
    if (node.op == &op::add)
      leave_out_of_sum(node);
    else
      make_zeros(node, flag_of(sources));
    return true;
  }

  /// Whether zeros stay zeros whatever its other operands hold.
  static bool gives_zeros_of_zeros(const Node& node) {
    return node.op != &op::add &&
           (node.op->is(graph::Trait::view) || node.op->is(graph::Trait::linear));
  }

  void make_zeros(const Node& node, Value* comes) {
    graph::Builder& builder = rewriter_.builder();
    for (const Value* output : node.outputs)
      if (output->type.is_tensor() && graph::is_differentiable(output->type.dtype))
        rewriter_.set(output, op::where(builder, {comes, rewriter_[output],
                                                  ops::zeros(builder, output->type)}));
  }

  /// A term that does not come is not added: -0.0 stays what it is.
  void leave_out_of_sum(const Node& sum) {
    if (graph::constant_number(sum.inputs[2]) != 1) return;
    for (const size_t term : {0, 1}) {
      const Value* const rest = sum.inputs[1 - term];
      const auto sources = sources_.find(sum.inputs[term]);
      if (sources == sources_.end() || rest->type != sum.output()->type) continue;
      const auto other = sources_.find(rest);
      if (other != sources_.end() && other->second == sources->second) continue;
      rewriter_.set(sum.output(),
                    op::where(rewriter_.builder(), {flag_of(sources->second),
                                                    rewriter_[sum.output()], rewriter_[rest]}));
    }
  }

  /// Whether one of them comes.
  Value* flag_of(const Sources& sources) {
    Value*& flag = flags_[sources];
    if (flag != nullptr) return flag;
    Value* any = nullptr;
    for (size_t i = 0; i < sources.size(); ++i) {
      if (!sources[i]) continue;
      Sources own(sources.size());
      own[i] = true;
      Value* const comes = flags_.at(own);
      any = any == nullptr ? comes : op::logical_or(rewriter_.builder(), {any, comes});
    }
    return flags_[sources] = any;
  }

  graph::Rewriter rewriter_;
  std::map<Sources, Value*> flags_;
  std::unordered_map<const Value*, Sources> sources_;
};

}  // namespace

Graph with_absence_at_run_time(const Graph& backward, size_t gradient_count) {
  return AbsenceAtRunTime(backward, gradient_count).run(backward.body());
}

Graph without_absent_gradients(const Graph& backward, const std::vector<bool>& given) {
  if (std::ranges::find(given, false) == given.end()) return copied(backward);
  return AbsentGradients(backward, given).run(backward.body());
}

}  // namespace janus::passes
