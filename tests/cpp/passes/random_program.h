// Random programs with nested `if` and `while` nodes, whose values stay small: for tests of
// gradients and of execution.
#pragma once

#include <functional>
#include <random>
#include <string>
#include <vector>

#include "base/check.h"
#include "graph/builder.h"
#include "ops/expression.h"
#include "ops/list.h"

namespace janus::passes {

/// With functions, also calls of functions that call each other.
///
/// Inputs: three tensors f64[2], two flags, one count of iterations. Result: one number.
class RandomProgram {
 public:
  /// Gives a number below its argument.
  using Choice = std::function<size_t(size_t)>;

  explicit RandomProgram(unsigned seed, bool with_functions = false)
      : RandomProgram(drawn_from(seed), with_functions) {}
  /// The program that these choices make.
  explicit RandomProgram(Choice choice, bool with_functions = false)
      : pick(std::move(choice)),
        graph_("random"),
        builder_(graph_),
        with_functions_(with_functions) {}

  graph::Graph build() {
    for (size_t i = 0; i < 3; ++i)
      tensors_.push_back(builder_.input(graph::Type::tensor(graph::DType::f64, {2}), cat("x", i)));
    for (size_t i = 0; i < 2; ++i)
      flags_.push_back(builder_.input(graph::Type::boolean(), cat("c", i)));
    count_ = builder_.input(graph::Type::i64(), "n");
    zero_ = builder_.constant(int64_t{0});
    one_ = builder_.constant(int64_t{1});
    if (with_functions_) {
      fill(builder_, 2, 0);
      for (const char* name : {"f", "g"}) function(name);
      calls_left_ = builder_.constant(int64_t{3});
    }
    fill(builder_, 6, 2);
    graph::Value* total = nullptr;
    for (size_t i = 3; i < tensors_.size(); ++i) {
      graph::Value* part = op::sum(builder_, {op::tanh(builder_, {tensors_[i]})});
      total = total == nullptr ? part : op::add(builder_, {total, part});
    }
    graph_.body().results = {total};
    return std::move(graph_);
  }

 private:
  static Choice drawn_from(unsigned seed) {
    return [random = std::mt19937(seed)](size_t count) mutable {
      return std::uniform_int_distribution<size_t>(0, count - 1)(random);
    };
  }

  graph::Value* any() {
    return tensors_[pick(2) == 0 ? tensors_.size() - 1 : pick(tensors_.size())];
  }

  void fill(graph::Builder& builder, size_t count, int depth) {
    for (size_t i = 0; i < count; ++i) {
      const size_t kind = pick(depth > 0 ? 8 : 5);
      if (calls_left_ != nullptr && pick(4) == 0) {
        call(builder);
      } else if (kind < 2) {
        tensors_.push_back(op::mul(builder, {any(), any()}));
        tensors_.back() = op::sin(builder, {tensors_.back()});
      } else if (kind == 2) {
        tensors_.push_back(op::tanh(builder, {op::add(builder, {any(), any()})}));
      } else if (kind == 3) {
        tensors_.push_back(op::tanh(builder, {any()}));
      } else if (kind == 4) {
        tensors_.push_back(op::neg(builder, {any()}));
      } else if (kind == 5) {
        loop(builder, depth);
      } else {
        branch(builder, depth);
      }
    }
  }

  /// Fills a block with nodes of its own and gives `count` of the values that are visible there.
  std::vector<graph::Value*> fill_block(graph::Block& block, size_t count, int depth) {
    const size_t outer = tensors_.size();
    graph::Builder builder(graph_, block);
    for (graph::Value* parameter : block.parameters)
      if (parameter->type.is_tensor()) tensors_.push_back(parameter);
    fill(builder, 1 + pick(3), depth - 1);
    std::vector<graph::Value*> results;
    for (size_t i = 0; i < count; ++i) results.push_back(any());
    tensors_.resize(outer);
    return results;
  }

  void give_outputs(graph::Node& node, std::span<graph::Value* const> like) {
    for (const graph::Value* value : like) {
      graph::Value* output = graph_.new_value(value->type);
      output->definition = &node;
      output->index = static_cast<uint32_t>(node.outputs.size());
      node.outputs.push_back(output);
      if (value->type.is_tensor()) tensors_.push_back(output);
    }
  }

  void branch(graph::Builder& builder, int depth) {
    graph::Value* condition = flags_[pick(flags_.size())];
    graph::Node* node =
        builder.append_unchecked(op::if_, std::span<graph::Value* const>(&condition, 1), {}, {});
    const size_t count = 1 + pick(2);
    for (int side = 0; side < 2; ++side) {
      graph::Block& block = node->add_block();
      block.results = fill_block(block, count, depth);
    }
    give_outputs(*node, node->blocks[0]->results);
  }

  void loop(graph::Builder& builder, int depth) {
    std::vector<graph::Value*> start;
    for (size_t i = 1 + pick(3); i > 0; --i) start.push_back(any());
    start.push_back(zero_);
    graph::Node* node = builder.append_unchecked(op::while_, start, {}, {});
    graph::Block& condition = node->add_block();
    graph::Block& body = node->add_block();
    for (const graph::Value* value : start)
      for (graph::Block* block : {&condition, &body}) graph_.new_parameter(*block, value->type);
    graph::Builder test(graph_, condition);
    condition.results = {op::scalar_lt(test, {condition.parameters.back(), count_})};
    flags_.push_back(nullptr);
    graph::Builder inside(graph_, body);
    graph::Value* two = inside.constant(int64_t{2});
    flags_.back() =
        op::scalar_eq(inside, {op::scalar_mod(inside, {body.parameters.back(), two}), zero_});
    body.results = fill_block(body, start.size() - 1, depth);
    flags_.pop_back();
    body.results.push_back(op::scalar_add(inside, {body.parameters.back(), one_}));
    give_outputs(*node, start);
  }

  /// A function of two tensors and of how deeply it may call, which gives two tensors. It uses
  /// tensors from outside as well, and calls itself and the others, some of them twice.
  void function(const std::string& name) {
    graph::Node* node = builder_.append_unchecked(op::function, {}, {{"name", name}}, {});
    graph::Block& block = node->add_block();
    const graph::Type type = tensors_.front()->type;
    for (const char* parameter : {"a", "b"}) graph_.new_parameter(block, type, parameter);
    calls_left_ = graph_.new_parameter(block, graph::Type::i64(), "left");
    graph::Builder builder(graph_, block);
    graph::Value* go_on = op::scalar_gt(builder, {calls_left_, zero_});
    graph::Node* choice =
        builder.append_unchecked(op::if_, std::span<graph::Value* const>(&go_on, 1), {}, {});
    const size_t outer = tensors_.size();
    tensors_.insert(tensors_.end(), block.parameters.begin(), block.parameters.begin() + 2);
    graph::Block& deeper = choice->add_block();
    graph::Builder inside(graph_, deeper);
    calls_left_ = op::scalar_sub(inside, {calls_left_, one_});
    const size_t around = tensors_.size();
    for (size_t i = 1 + pick(2); i > 0; --i) call(inside);
    deeper.results = fill_block(deeper, 2, 1);
    tensors_.resize(around);
    calls_left_ = nullptr;
    graph::Block& last = choice->add_block();
    last.results = fill_block(last, 2, 1);
    give_outputs(*choice, last.results);
    fill(builder, 1, 0);
    block.results = {op::tanh(builder, {tensors_.back()}), any()};
    tensors_.resize(outer);
  }

  void call(graph::Builder& builder) {
    const std::vector<graph::Value*> operands = {any(), any(), calls_left_};
    const char* name = pick(2) == 0 ? "f" : "g";
    const graph::Type type = operands.front()->type;
    const graph::Node* node =
        builder.append_unchecked(op::call, operands, {{"callee", std::string(name)}}, {type, type});
    tensors_.insert(tensors_.end(), node->outputs.begin(), node->outputs.end());
  }

  Choice pick;
  graph::Graph graph_;
  graph::Builder builder_;
  std::vector<graph::Value*> tensors_, flags_;
  bool with_functions_ = false;
  graph::Value* calls_left_ = nullptr;  ///< null: there are no functions to call
  graph::Value *count_ = nullptr, *zero_ = nullptr, *one_ = nullptr;
};

}  // namespace janus::passes
