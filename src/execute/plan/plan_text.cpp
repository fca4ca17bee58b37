// What a plan does, as text: for tests, and for TORCHJANUS_LOG.
#include <cmath>

#include "base/check.h"
#include "execute/plan/plan.h"
#include "graph/op.h"

namespace janus::execute {

namespace {

std::string list_of(const std::vector<uint32_t>& slots) {
  std::string list;
  for (uint32_t slot : slots) list += cat(list.empty() ? "" : ", ", '$', slot);
  return list;
}

std::string call_text(const Instruction& instruction) {
  return cat(list_of(instruction.outputs), " = ", instruction.node->op->name, ' ',
             list_of(instruction.inputs));
}

std::string operands_text(const KernelCall& call) {
  std::vector<uint32_t> slots;
  for (size_t k = 0; k < call.tensor_count(); ++k) slots.push_back(call.slot(k));
  return list_of(slots);
}

}  // namespace

std::string Plan::describe() const {
  std::string text = cat("arena of ", arena_bytes_, " bytes\n");
  for (size_t i = 0; i < steps_.size(); ++i) {
    if (i == first_write_) text += "-- nothing after this can fail --\n";
    text += "  ";
    if (!times_.empty()) text += cat('[', std::lround(times_[i] * 1e6), " us] ");
    text += describe(steps_[i]) + '\n';
  }
  return text;
}

std::string Plan::describe(const Step& step) const {
  const auto instruction = [&]() -> const Instruction& {
    return planned_.instructions[step.index];
  };
  switch (step.kind) {
    case Step::Kind::operation_into:
      return call_text(instruction());
    case Step::Kind::operation_fresh:
      return call_text(instruction()) + " (new memory)";
    case Step::Kind::operation_placed:
      return call_text(planned_.instructions[placed_[step.index].instruction]) + " (placed)";
    case Step::Kind::beside: {
      const Beside& group = besides_[step.index];
      std::string all = call_text(planned_.instructions[group.first]);
      for (uint32_t i = 1; i < group.count; ++i)
        all += " beside " + call_text(planned_.instructions[group.first + i]);
      return group.seconds[1] < group.seconds[0] ? all : all + " (one after the other)";
    }
    case Step::Kind::look:
      return cat("look whether ", instruction().node->op->name, ' ', list_of(instruction().inputs),
                 " fails");
    case Step::Kind::kernel:
      return "kernel " + operands_text(calls_[step.index].call);
    case Step::Kind::kernels: {
      std::string all;
      for (const KernelCall& call : batches_[step.index].kernels.calls())
        all += cat(all.empty() ? "kernels " : " and ", operands_text(call));
      return all;
    }
    case Step::Kind::number:
    case Step::Kind::size:
    case Step::Kind::item:
    case Step::Kind::identity:
      return cat('$', instruction().outputs[0], " = ", instruction().node->op->name);
    case Step::Kind::guard:
      return cat("guard $", instruction().inputs[0]);
    case Step::Kind::control:
    case Step::Kind::container:
      return cat(list_of(instruction().outputs), " = ", instruction().node->op->name, ' ',
                 list_of(instruction().operands()));
    case Step::Kind::skip: {
      const Skip& skip = skips_[step.index];
      return cat("skip ", skip.steps, skip.wanted ? " unless $" : " if $", skip.condition);
    }
    case Step::Kind::repoint:
    case Step::Kind::share:
    case Step::Kind::allocate:
    case Step::Kind::adopt:
    case Step::Kind::hand:
    case Step::Kind::copy:
    case Step::Kind::release:
      return describe_arrangement(step);
  }
  TORCHJANUS_CHECK(false, "plan: no kind of step");
}

std::string Plan::describe_arrangement(const Step& step) const {
  const auto transfer = [&](const std::vector<Transfer>& all) { return all[step.index]; };
  switch (step.kind) {
    case Step::Kind::repoint:
    case Step::Kind::share:
      return cat("view $", views_[step.index].slot, " of $", views_[step.index].root);
    case Step::Kind::allocate: {
      const Allocation& made = allocations_[step.index];
      return cat("new $", made.slot, ' ', made.layout,
                 made.replaced ? ", or in place of the old one" : "");
    }
    case Step::Kind::adopt:
      return cat('$', transfer(adoptions_).to, " is written in place into $",
                 transfer(adoptions_).from);
    case Step::Kind::hand:
      return cat('$', transfer(hands_).to, " = $", transfer(hands_).from);
    case Step::Kind::copy:
      return cat("copy $", transfer(copies_).from, " to $", transfer(copies_).to);
    default:
      return cat("free $", step.index);
  }
}

}  // namespace janus::execute
