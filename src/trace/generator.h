// The state of trace/to_graph.cpp: writes a structured program with variables as a graph.
#pragma once

#include <functional>

#include "trace/to_graph.h"
#include "trace/variables.h"

namespace janus::trace {

/// The types of variables, as far as blocks have shown them.
using VariableTypes = std::map<VariableId, graph::Type>;

/// A variable has another type than was thought where it began; the generation starts anew.
struct TypeLearned {
  VariableId variable;
  graph::Type type;
};

class Generator {
 public:
  Generator(const TraceGraph& traces, OperatorEmitter* emitter, const VariableTypes& types);

  /// Throws Refusal or TypeLearned.
  GeneratedGraph run();

 private:
  using Fill = std::function<void(graph::Builder&)>;

  // ---- what is there when the iteration begins (generator_inputs.cpp)
  void add_inputs();
  bool decides() const;
  void add_symbols();
  void add_early_feeds();
  void add_cells();
  void set_beginnings();
  graph::Value* beginning(const Variable& variable, VariableId id);
  graph::Type type_of_slot(SlotId slot) const;
  void emit_if_value(graph::Value* condition, const graph::Type& type, graph::Value* list);

  // ---- statements (generator.cpp)
  void emit(graph::Builder& builder, std::span<const Statement> statements,
            const VariableSet& behind);
  void emit_event(graph::Builder& builder, NodeId id);
  graph::Value* read_operand(graph::Builder& builder, NodeId id, uint32_t index);
  graph::Value* read_slot(graph::Builder& builder, SlotId slot);
  void take_early_feed(graph::Builder& builder, const Source& source, SlotId slot);
  std::vector<graph::Value*> compute(graph::Builder& builder, const Node& node,
                                     std::span<graph::Value* const> operands);
  void give_result(graph::Builder& builder, NodeId id, uint32_t result, graph::Value* value);
  void assign(const Source& source, graph::Value* value);
  void emit_select(graph::Builder& builder, std::span<const Statements> blocks, int64_t first,
                   graph::Value* decision, const VariableSet& behind);
  void emit_landing(graph::Builder& builder, const Statement& landing, const VariableSet& behind);
  void emit_if(graph::Builder& builder, graph::Value* condition, const VariableSet& assigned,
               const VariableSet& behind, const Fill& then, const Fill& otherwise);
  void emit_loop(graph::Builder& builder, const Statement& loop, const VariableSet& behind);
  void emit_while(graph::Builder& builder, const Statement& loop, const VariableSet& behind);
  /// A variable of a loop; without a start it is assigned before it is read.
  struct Carried {
    VariableId variable;
    graph::Value* start;
  };
  std::vector<Carried> carried_by(graph::Builder& builder, const Statement& loop,
                                  const VariableSet& live);
  void close_loop(graph::Builder& builder, graph::Node& node, std::span<const Carried> carried);
  static void check_carried(VariableId variable, const graph::Value& start,
                            const graph::Value& next);
  graph::Value* read_decision(graph::Builder& builder);
  graph::Value* next_position(graph::Builder& builder, VariableId position);

  // ---- helpers
  graph::Value* constant(const graph::AttributeValue& value);
  graph::Value* number(int64_t value);
  graph::Value* undefined(graph::Builder& builder, const graph::Type& type);
  graph::Type type_of(VariableId variable) const;
  graph::SourceSpan span_of(const std::string& location);
  void deepen();
  void finish();

  const TraceGraph& traces_;
  const Nodes& nodes_;
  OperatorEmitter* emitter_;
  const VariableTypes& types_;
  SlotUses slots_;
  Variables variables_;
  GeneratedGraph generated_;
  graph::Builder body_;
  std::vector<graph::Value*> slot_inputs_;         // by slot
  std::map<SlotId, graph::Value*> early_;          // the early feeds
  std::map<CellId, graph::Value*> cells_;          // what they hold when the iteration begins
  std::map<std::string, graph::Node*> constants_;  // by their text
  graph::Value* decisions_ = nullptr;
  std::vector<graph::Value*> current_;              // by variable; null: nothing was assigned
  std::map<Source, graph::Value*> fetched_;         // those that are certain
  std::map<std::string, graph::SourceSpan> spans_;  // by the text of a location
  int depth_ = 0;                                   // of nested blocks
};

}  // namespace janus::trace
