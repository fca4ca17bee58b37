// torch.utils.checkpoint.checkpoint(f, ..., use_reentrant=False): eager drops what f computed and
// computes it again for the gradients. In a graph that is a call of f: what gradients need is kept.
// Where computing again would be seen (f writes outside of itself, draws Python's numbers, prints,
// communicates), it is left to eager.
#include <algorithm>

#include "frontend/core/exceptions.h"
#include "frontend/core/interpreter.h"
#include "frontend/core/known_callables.h"
#include "frontend/core/operations.h"
#include "frontend/torch_library/special_callables.h"
#include "graph/op.h"

namespace janus::frontend {

using speculate::ReasonCode;

namespace {

/// What a call changes or draws that a second one would change or draw again.
struct Traces {
  explicit Traces(Interpreter& interpreter)
      : heap(interpreter.heap.change_count()),
        writes(interpreter.outside_writes),
        effects(interpreter.effect_count()),
        wrappers(interpreter.output().reducers.size()),
        block(&interpreter.builder().block()),
        nodes(interpreter.builder().block().nodes.size()) {}

  bool has_more_now(Interpreter& interpreter) const {
    const Traces now(interpreter);
    if (now.heap != heap || now.writes != writes || now.effects != effects) return true;
    if (now.wrappers != wrappers) return true;
    if (now.block != block) return true;
    bool shows = false;
    const auto look = [&](const graph::Node& node) {
      shows = shows || node.op->computed_by == graph::ComputedBy::python ||
              node.op->is(graph::Trait::communicates);
    };
    for (size_t i = nodes; i < block->nodes.size(); ++i) {
      look(*block->nodes[i]);
      for (const auto& inner : block->nodes[i]->blocks) graph::for_each_node(*inner, look);
    }
    return shows;
  }

  size_t heap, writes, effects;
  size_t wrappers;  ///< calls of models within DistributedDataParallel
  graph::Block* block;
  size_t nodes;
};

Value call_checkpoint(Interpreter& interpreter, const CallArguments& arguments) {
  const Awaiting nothing(interpreter, Awaiting::What::nothing);
  if (arguments.positional.empty())
    interpreter.refuse(ReasonCode::would_raise, "TypeError: checkpoint() misses the function");
  const auto refuse = [&](const std::string& what) {
    interpreter.refuse(ReasonCode::unsupported_argument, cat("a checkpoint ", what));
  };
  CallArguments rest;
  rest.positional.assign(arguments.positional.begin() + 1, arguments.positional.end());
  bool is_reentrant = true;
  for (const auto& [name, value] : arguments.keywords) {
    if (name == "use_reentrant")
      is_reentrant = truth(interpreter, value, -1);
    else if (name == "preserve_rng_state" && !truth(interpreter, value, -1))
      refuse("that draws other numbers when it computes again");
    else if (name == "context_fn" || name == "debug" || name == "determinism_check")
      refuse(cat("with the argument ", name));
    else if (name != "preserve_rng_state" && name != "early_stop")
      rest.keywords.emplace_back(name, value);
  }
  if (is_reentrant) refuse("without use_reentrant=False");
  const Traces before(interpreter);
  Value result = call(interpreter, arguments.positional[0], rest);
  if (interpreter.modes.grad_enabled && before.has_more_now(interpreter))
    refuse("of a function that changes, draws or sends something when it is computed again");
  return result;
}

}  // namespace

std::span<const SpecialCallable> checkpoint_callables() {
  static constexpr SpecialCallable table[] = {
      {"torch.utils.checkpoint.checkpoint", call_checkpoint},
  };
  return table;
}

}  // namespace janus::frontend
