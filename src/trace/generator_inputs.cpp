// What a generated graph is given, and what its variables hold when the iteration begins.
#include <algorithm>

#include "base/check.h"
#include "graph/run_time_symbols.h"
#include "ops/list.h"
#include "trace/generator.h"

namespace janus::trace {

using namespace graph;

Generator::Generator(const TraceGraph& traces, OperatorEmitter* emitter, const VariableTypes& types)
    : traces_(traces),
      nodes_(traces.nodes()),
      emitter_(emitter),
      types_(types),
      slots_(nodes_),
      variables_(nodes_, traces.names(), slots_),
      generated_{.graph = Graph("traces")},
      body_(generated_.graph),
      current_(variables_.size()) {}

Type Generator::type_of_slot(SlotId slot) const {
  const Slot& place = nodes_.slots[slot];
  return nodes_.nodes[place.node].inputs[place.input].early.symbolic();
}

void Generator::add_inputs() {
  if (decides()) {
    decisions_ = body_.input(Type::list(Type::i64()), "decisions");
    generated_.inputs.push_back({.kind = GraphInput::Kind::decisions});
  }
  for (SlotId slot = 0; slot < nodes_.slots.size(); ++slot) {
    const Type type = type_of_slot(slot);
    const bool is_list = slots_.given(slot) != Given::always;
    const bool is_feed = type.is_tensor();
    slot_inputs_.push_back(
        body_.input(is_list ? Type::list(type) : type, cat(is_feed ? "feed" : "number", slot)));
    generated_.inputs.push_back(
        {.kind = is_feed ? GraphInput::Kind::feed : GraphInput::Kind::number,
         .slot = slot,
         .is_list = is_list});
  }
  add_symbols();
}

/// Whether an iteration has anything to decide.
bool Generator::decides() const {
  const auto branches = [](const std::vector<NodeId>& children) { return children.size() > 1; };
  return std::any_of(nodes_.levels.begin(), nodes_.levels.end(),
                     [&](const Level& level) { return branches(level.first); }) ||
         std::any_of(nodes_.nodes.begin(), nodes_.nodes.end(), [&](const Node& node) {
           return branches(node.children) || (node.is_loop() && node.fixed_trips == 0);
         });
}

/// A run takes the value of a symbol from a tensor among its inputs and cells; others are given.
void Generator::add_symbols() {
  std::set<std::string> shown;
  const auto note = [&](const Type& type) {
    for (const Dim& size : type.shape) shown.insert(symbol_shown_by(size));
  };
  for (const Value* input : generated_.graph.inputs()) note(input->type);
  for (const auto& [id, pattern] : nodes_.cells) note(pattern.symbolic());
  for (int32_t symbol = 0; symbol < nodes_.symbol_count; ++symbol) {
    const std::string name = symbol_name(symbol);
    if (shown.contains(name)) continue;
    body_.input(Type::i64(), name);
    generated_.inputs.push_back({.kind = GraphInput::Kind::symbol, .symbol = symbol});
  }
}

void Generator::add_early_feeds() {
  for (SlotId slot = 0; slot < nodes_.slots.size(); ++slot) {
    if (!slots_.is_early(slot)) continue;
    Value* given = slot_inputs_[slot];
    if (slots_.given(slot) != Given::always) {
      Value* count = op::list_size(body_, {given});
      Value* is_there = op::scalar_gt(body_, {count, number(0)});
      emit_if_value(is_there, type_of_slot(slot), given);
      given = body_.block().nodes.back()->output();
    }
    early_[slot] = given;
  }
}

/// The only element of the list, or nothing that anybody reads.
void Generator::emit_if_value(Value* condition, const Type& type, Value* list) {
  graph::Node* node = generated_.graph.new_node(op::if_);
  node->inputs = {condition};
  Builder then(generated_.graph, node->add_block());
  Builder otherwise(generated_.graph, node->add_block());
  then.block().results = {op::list_item(then, {list, number(0)})};
  otherwise.block().results = {undefined(otherwise, type)};
  generated_.graph.new_output(*node, type);
  generated_.graph.append(body_.block(), node);
}

void Generator::add_cells() {
  const auto add = [&](CellId cell, const Type& type) {
    Value*& value = cells_[cell];
    if (value != nullptr) return;
    const std::string name = traces_.names().cell(cell);
    value = body_.append_unchecked(op::state, {}, {{"cell", name}}, {type})->output();
  };
  for (const auto& [id, pattern] : nodes_.cells) add(id, pattern.symbolic());
  for (const Node& node : nodes_.nodes) {
    const CellId* cell = traces_.names().operators.written_cell(node.key.op);
    if (cell == nullptr || node.is_loop()) continue;
    const VariableId contents = variables_.id(
        {.kind = Variable::Kind::contents, .source = {.kind = Source::Kind::cell, .cell = *cell}});
    add(*cell, type_of(contents));
  }
}

/// The type of a variable as far as it is known: by what was learned, else by what traces showed.
Type Generator::type_of(VariableId id) const {
  if (const auto found = types_.find(id); found != types_.end()) return found->second;
  const Variable& variable = variables_[id];
  switch (variable.kind) {
    case Variable::Kind::value:
      for (const Source& source : variable.sources)
        if (source.kind != Source::Kind::feed) return nodes_.pattern(source).symbolic();
      return type_of_slot(variable.number);
    case Variable::Kind::fetched:
      return Type::list(nodes_.pattern(variable.source).symbolic());
    case Variable::Kind::untaken:
      return Type::boolean();
    case Variable::Kind::contents:
      if (const auto found = nodes_.cells.find(variable.source.cell); found != nodes_.cells.end())
        return found->second.symbolic();
      for (const Node& node : nodes_.nodes) {
        const CellId* cell = traces_.names().operators.written_cell(node.key.op);
        if (cell == nullptr || node.is_loop() || *cell != variable.source.cell) continue;
        const Source& source = node.inputs[0].sources[0];
        return source.kind == Source::Kind::feed ? node.inputs[0].early.symbolic()
                                                 : nodes_.pattern(source).symbolic();
      }
      return Type::none();
    default:
      return Type::i64();
  }
}

void Generator::set_beginnings() {
  for (VariableId id = 0; id < variables_.size(); ++id)
    current_[id] = beginning(variables_[id], id);
}

Value* Generator::beginning(const Variable& variable, VariableId id) {
  switch (variable.kind) {
    case Variable::Kind::value:
      for (const Source& source : variable.sources) {
        if (source.kind == Source::Kind::cell) return cells_.at(source.cell);
        if (source.kind == Source::Kind::feed) return early_.at(variable.number);
      }
      if (const Source* source = variables_.early_slot(variable.sources))
        return early_.at(nodes_.nodes[source->node].inputs[source->index].slot);
      return nullptr;
    case Variable::Kind::untaken:
      return constant(true);
    case Variable::Kind::decisions:
    case Variable::Kind::slot:
      return number(0);
    case Variable::Kind::landing:
      return nullptr;
    case Variable::Kind::fetched:
      return body_.append_unchecked(op::list_new, {}, {}, {type_of(id)})->output();
    case Variable::Kind::contents:
      return cells_.at(variable.source.cell);
  }
  return nullptr;
}

GeneratedGraph Generator::run() {
  add_inputs();
  add_early_feeds();
  add_cells();
  set_beginnings();
  const auto statements = structured(nodes_);
  if (!statements) throw Refusal{"branches are nested too deeply"};
  emit(body_, *statements, variables_.results());
  finish();
  std::vector<graph::Node*>& nodes = generated_.graph.body().nodes;
  std::vector<graph::Node*> constants;
  for (const auto& [text, node] : constants_) constants.push_back(node);
  nodes.insert(nodes.begin(), constants.begin(), constants.end());
  return std::move(generated_);
}

/// Writes, and what Python looks at.
void Generator::finish() {
  for (const VariableId id : variables_.results()) {
    const Variable& variable = variables_[id];
    if (variable.kind != Variable::Kind::contents) continue;
    const std::string name = traces_.names().cell(variable.source.cell);
    body_.append(op::commit, {current_[id]}, {{"cell", name}});
  }
  for (NodeId node = 0; node < nodes_.nodes.size(); ++node)
    for (uint32_t r = 0; r < nodes_.nodes[node].results.size(); ++r) {
      if (!nodes_.nodes[node].fetched[r]) continue;
      const Source source{.node = node, .index = r};
      const auto certain = fetched_.find(source);
      const bool is_list = certain == fetched_.end();
      generated_.graph.body().results.push_back(
          is_list ? current_[variables_.id({.kind = Variable::Kind::fetched, .source = source})]
                  : certain->second);
      generated_.results.push_back({.node = node, .result = r, .is_list = is_list});
    }
}

}  // namespace janus::trace
