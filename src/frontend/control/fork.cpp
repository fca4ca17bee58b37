#include "frontend/control/fork.h"

#include "frontend/control/effects.h"

namespace janus::frontend {

Fork::Fork(Interpreter& interpreter, const Truth& truth, int fact)
    : Fork(interpreter, truth, TestKey{interpreter.frame().code->facts_key, fact}) {}

Fork::Fork(Interpreter& interpreter, const Truth& truth, TestKey test)
    : interpreter_(interpreter),
      test_(std::move(test)),
      flag_(truth.flag),
      example_(truth.example),
      outer_(interpreter.builder().block()),
      span_(interpreter.user_span()),
      before_(SavedState::of(interpreter)),
      results_(interpreter.results().size()),
      differentiable_results_(interpreter.output().differentiable_results.size()) {
  interpreter.begin_scope(*this);
}

Fork::~Fork() {
  for (Side& side : sides_) interpreter_.put_away(std::move(side.block));
}

void Fork::enter(size_t side) {
  at_ = side;
  const SavedState& from = sides_[side].state ? *sides_[side].state : before_;
  if (from.objects.has_moved_iterator())
    throw CannotMerge{test_, "one side takes more from an iterator"};
  // Objects of the entry that were reached since the side was left are as they were before.
  before_.restore(interpreter_);
  if (sides_[side].state) sides_[side].state->restore(interpreter_);
  interpreter_.enter_block(*sides_[side].block);
  if (!sides_[side].state) interpreter_.learn_classes(flag_, side == 0);
}

void Fork::leave(Completion completion, Value result) {
  if (interpreter_.output().differentiable_results.size() != differentiable_results_)
    throw CannotMerge{test_, "a differentiable tensor leaves the run on one side only"};
  check_effects();
  Side& side = sides_[at_];
  side.state = before_.again(interpreter_);
  side.completion = completion;
  side.result = std::move(result);
}

/// What the side at hand shows has to be such that can be left out.
void Fork::check_effects() const {
  const auto& effects = interpreter_.effects;
  for (size_t i = before_.state.effects.size(); i < effects.size(); ++i)
    if (!may_be_conditional(effects[i].call))
      throw CannotMerge{test_, "one side has a side effect that can't be conditional"};
}

void Fork::adopt(size_t side) {
  if (at_ != side) enter(side);
  graph::Block& block = *sides_[side].block;
  for (graph::Node* node : block.nodes) node->parent = &outer_;
  outer_.nodes.insert(outer_.nodes.end(), block.nodes.begin(), block.nodes.end());
  block.nodes.clear();
  interpreter_.end_scope(*this);
  interpreter_.enter_block(outer_);
}

Value Fork::adopt_other() {
  interpreter_.abandon_scopes(*this);
  adopt(1 - at_);
  return sides_[at_].result;
}

void Fork::close() {
  interpreter_.end_scope(*this);
  interpreter_.mark(speculate::LineMark::Kind::graph, "both sides in the graph", span_);
}

}  // namespace janus::frontend
