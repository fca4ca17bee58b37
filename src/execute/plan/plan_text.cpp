// See plan_text.h.
#include "execute/plan/plan_text.h"

#include <cmath>

#include "base/check.h"
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

std::string describe_arrangement(const Plan& plan, const Step& step) {
  const auto transfer = [&](const std::vector<Plan::Transfer>& all) { return all[step.index]; };
  switch (step.kind) {
    case Step::Kind::repoint:
    case Step::Kind::share:
      return cat("view $", plan.views[step.index].slot, " of $", plan.views[step.index].root);
    case Step::Kind::allocate: {
      const Plan::Allocation& made = plan.allocations[step.index];
      return cat("new $", made.slot, ' ', made.layout,
                 made.replaced ? ", or in place of the old one" : "");
    }
    case Step::Kind::adopt:
      return cat('$', transfer(plan.adoptions).to, " is written in place into $",
                 transfer(plan.adoptions).from);
    case Step::Kind::hand:
      return cat('$', transfer(plan.hands).to, " = $", transfer(plan.hands).from);
    case Step::Kind::copy:
      return cat("copy $", transfer(plan.copies).from, " to $", transfer(plan.copies).to);
    default:
      return cat("free $", step.index);
  }
}

std::string describe(const Plan& plan, const Step& step) {
  const auto instruction = [&]() -> const Instruction& {
    return plan.code.instructions[step.index];
  };
  switch (step.kind) {
    case Step::Kind::operation_into:
      return call_text(instruction());
    case Step::Kind::operation_fresh:
      return call_text(instruction()) + " (new memory)";
    case Step::Kind::operation_placed:
      return call_text(plan.code.instructions[plan.placed[step.index].instruction]) + " (placed)";
    case Step::Kind::beside: {
      const Plan::Beside& group = plan.besides[step.index];
      std::string all = call_text(plan.code.instructions[group.first]);
      for (uint32_t i = 1; i < group.count; ++i)
        all += " beside " + call_text(plan.code.instructions[group.first + i]);
      return group.seconds[1] < group.seconds[0] ? all : all + " (one after the other)";
    }
    case Step::Kind::look:
      return cat("look whether ", instruction().node->op->name, ' ', list_of(instruction().inputs),
                 " fails");
    case Step::Kind::kernel:
      return "kernel " + operands_text(plan.calls[step.index].call);
    case Step::Kind::kernels: {
      std::string all;
      for (const KernelCall& call : plan.batches[step.index].kernels.calls())
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
      const Plan::Skip& skip = plan.skips[step.index];
      return cat("skip ", skip.steps, skip.wanted ? " unless $" : " if $", skip.condition);
    }
    case Step::Kind::repoint:
    case Step::Kind::share:
    case Step::Kind::allocate:
    case Step::Kind::adopt:
    case Step::Kind::hand:
    case Step::Kind::copy:
    case Step::Kind::release:
      return describe_arrangement(plan, step);
  }
  TORCHJANUS_CHECK(false, "plan: no kind of step");
}

}  // namespace

std::string describe(const Plan& plan) {
  std::string text = cat("arena of ", plan.arena_bytes, " bytes\n");
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    if (i == plan.first_write) text += "-- nothing after this can fail --\n";
    text += "  ";
    if (!plan.times.empty()) text += cat('[', std::lround(plan.times[i] * 1e6), " us] ");
    text += describe(plan, plan.steps[i]) + '\n';
  }
  return text;
}

}  // namespace janus::execute
