#include "trace/to_graph.h"

#include "base/check.h"
#include "trace/generator.h"

namespace janus::trace {

namespace {

/// A type may depend on another one that was learned before.
constexpr int kMostAttempts = 16;

}  // namespace

std::variant<GeneratedGraph, Refusal> to_graph(const TraceGraph& traces, OperatorEmitter* emitter) {
  VariableTypes types;
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    try {
      return Generator(traces, emitter, types).run();
    } catch (const TypeLearned& learned) {
      types.insert_or_assign(learned.variable, learned.type);
    } catch (Refusal& refusal) {
      return std::move(refusal);
    }
  }
  return Refusal{"the types of values in loops do not settle"};
}

}  // namespace janus::trace
