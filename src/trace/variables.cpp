#include "trace/variables.h"

#include <algorithm>
#include <span>

namespace janus::trace {

namespace {

bool is_input(const Source& source) {
  return source.is_early() || source.kind == Source::Kind::number;
}

/// Inputs with the same sources share a variable, unless each has a feed of its own among them.
Variable variable_of(const Input& input) {
  Variable result{.kind = Variable::Kind::value, .sources = input.sources};
  std::sort(result.sources.begin(), result.sources.end());
  if (input.has(Source::Kind::feed)) result.number = input.slot;
  return result;
}

}  // namespace

Variables::Variables(const Nodes& nodes, const Names& names, const SlotUses& slots)
    : nodes_(nodes), names_(names), slots_(slots) {
  add({.kind = Variable::Kind::decisions});
  for (uint32_t level = 0; level < nodes.levels.size(); ++level)
    add({.kind = Variable::Kind::landing, .number = level});
  for (NodeId id = 0; id < nodes.nodes.size(); ++id) add_node(id);
  // By what other inputs read of an early feed it shows whether its use has to be noticed.
  reads_.resize(nodes.nodes.size());
  for (NodeId id = 0; id < nodes.nodes.size(); ++id)
    for (const Input& input : nodes.nodes[id].inputs) reads_[id].push_back(add_input(input));
  for (NodeId id = 0; id < nodes.nodes.size(); ++id) {
    assignments_.push_back(assignments_of(id));
    exposed_.push_back(exposed_in(id));
  }
}

VariableId Variables::add(Variable variable) {
  const auto [found, is_new] =
      ids_.try_emplace(variable, static_cast<VariableId>(variables_.size()));
  if (is_new) variables_.push_back(std::move(variable));
  return found->second;
}

void Variables::add_node(NodeId id) {
  const Node& node = nodes_.nodes[id];
  if (const CellId* cell = names_.operators.written_cell(node.key.op); cell && !node.is_loop())
    results_.insert(add(
        {.kind = Variable::Kind::contents, .source = {.kind = Source::Kind::cell, .cell = *cell}}));
  for (uint32_t r = 0; r < node.results.size(); ++r)
    if (node.fetched[r] && slots_.executed(id) != Given::always)
      results_.insert(add({.kind = Variable::Kind::fetched, .source = {.node = id, .index = r}}));
  for (const Input& input : node.inputs)
    if (input.slot != kNone && !slots_.is_early(input.slot) &&
        slots_.given(input.slot) == Given::repeatedly)
      add({.kind = Variable::Kind::slot, .number = input.slot});
}

VariableId Variables::add_input(const Input& input) {
  if (input.sources.size() == 1 && is_input(input.sources[0])) return kNone;
  const Variable variable = variable_of(input);
  if (const auto found = ids_.find(variable); found != ids_.end()) return found->second;
  const VariableId own = add(variable);
  const Source* early = early_slot(variable.sources);
  for (const Source& source : variable.sources) {
    if (is_input(source) || &source == early) continue;
    by_source_[source].push_back(own);
    if (source.kind == Source::Kind::slot) add_flag(source);
  }
  return own;
}

/// Whether an early feed has been used has to be known where a variable names it among sources that
/// do not replace it.
void Variables::add_flag(const Source& slot) {
  const Input& input = nodes_.nodes[slot.node].inputs[slot.index];
  const Variable flag{.kind = Variable::Kind::untaken, .source = slot};
  if (!slots_.is_early(input.slot) || has(flag)) return;
  const VariableId id = add(flag);
  for (const Source& other : input.sources)
    if (!is_input(other)) untaken_[other].push_back(id);
}

const Source* Variables::early_slot(const std::vector<Source>& sources) const {
  const Source* found = nullptr;
  for (const Source& source : sources) {
    if (source.kind != Source::Kind::slot) continue;
    if (!slots_.is_early(nodes_.nodes[source.node].inputs[source.index].slot)) continue;
    if (found != nullptr) return nullptr;
    found = &source;
  }
  if (found == nullptr) return nullptr;
  const auto& before = nodes_.nodes[found->node].inputs[found->index].sources;
  const bool replaced_alike =
      std::all_of(sources.begin(), sources.end(), [&](const Source& source) {
        return &source == found || (!is_input(source) && std::find(before.begin(), before.end(),
                                                                   source) != before.end());
      });
  return replaced_alike ? found : nullptr;
}

const std::vector<VariableId>& Variables::assigned_by(const Source& source) const {
  static const std::vector<VariableId> none;
  const auto found = by_source_.find(source);
  return found == by_source_.end() ? none : found->second;
}

const std::vector<VariableId>& Variables::untaken_until(const Source& source) const {
  static const std::vector<VariableId> none;
  const auto found = untaken_.find(source);
  return found == untaken_.end() ? none : found->second;
}

// ---- What statements read and assign ----------------------------------------------------------

std::vector<Variables::Assignment> Variables::assignments_of(NodeId id) const {
  std::vector<Assignment> result;
  const auto add_all = [&](const std::vector<VariableId>& variables, uint32_t input, bool perhaps) {
    for (const VariableId variable : variables) result.push_back({variable, input, perhaps});
  };
  const auto add_one = [&](const Variable& variable, uint32_t input) {
    if (has(variable)) result.push_back({this->id(variable), input, false});
  };
  const Node& node = nodes_.nodes[id];
  for (uint32_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i].slot == kNone) continue;
    const Source source{.kind = Source::Kind::slot, .node = id, .index = i};
    const Variable flag{.kind = Variable::Kind::untaken, .source = source};
    add_one({.kind = Variable::Kind::slot, .number = node.inputs[i].slot}, i);
    add_all(assigned_by(source), i, has(flag));
    add_all(untaken_until(source), i, has(flag));
    add_one(flag, i);
  }
  for (uint32_t r = 0; r < node.results.size(); ++r) {
    const Source source{.kind = Source::Kind::result, .node = id, .index = r};
    add_all(assigned_by(source), kNone, false);
    add_all(untaken_until(source), kNone, false);
    add_one({.kind = Variable::Kind::fetched, .source = {.node = id, .index = r}}, kNone);
  }
  if (const CellId* cell = names_.operators.written_cell(node.key.op))
    add_one(
        {.kind = Variable::Kind::contents, .source = {.kind = Source::Kind::cell, .cell = *cell}},
        kNone);
  return result;
}

/// What an event reads of what was assigned before it.
std::vector<VariableId> Variables::exposed_in(NodeId id) const {
  using Kind = Variable::Kind;
  std::vector<VariableId> result;
  std::map<VariableId, uint32_t> assigned;  // by the first input that does so for certain
  for (const Assignment& each : assignments_[id]) {
    const Kind kind = variables_[each.variable].kind;
    if (each.perhaps || kind == Kind::slot || kind == Kind::untaken || kind == Kind::fetched) {
      result.push_back(each.variable);
    } else if (each.input != kNone) {
      assigned.try_emplace(each.variable, each.input);
    }
  }
  for (uint32_t i = 0; i < reads_[id].size(); ++i) {
    const auto found = assigned.find(reads_[id][i]);
    const bool is_own = found != assigned.end() && found->second < i;
    if (reads_[id][i] != kNone && !is_own) result.push_back(reads_[id][i]);
  }
  return result;
}

VariableSet Variables::assigned(const Statements& statements) const {
  VariableSet result;
  for (const Statement& statement : statements) {
    using Kind = Statement::Kind;
    if (statement.kind == Kind::event)
      for (const Assignment& each : assignments_[statement.node]) result.insert(each.variable);
    if (statement.kind == Kind::jump)
      result.insert(id({.kind = Variable::Kind::landing, .number = statement.level}));
    if (statement.kind == Kind::select || statement.kind == Kind::loop)
      result.insert(id({.kind = Variable::Kind::decisions}));
    for (const Statements& block : statement.blocks) result.merge(assigned(block));
  }
  return result;
}

VariableSet Variables::live_before(std::span<const Statement> statements, VariableSet live) const {
  for (size_t i = statements.size(); i-- > 0;) step_back(statements[i], live);
  return live;
}

void Variables::step_back(const Statement& statement, VariableSet& live) const {
  switch (statement.kind) {
    case Statement::Kind::event:
      for (const Assignment& each : assignments_[statement.node]) live.erase(each.variable);
      live.insert(exposed_[statement.node].begin(), exposed_[statement.node].end());
      return;
    case Statement::Kind::jump:
      live.erase(id({.kind = Variable::Kind::landing, .number = statement.level}));
      return;
    case Statement::Kind::select: {
      VariableSet before;
      for (const Statements& block : statement.blocks) before.merge(live_before(block, live));
      before.insert(id({.kind = Variable::Kind::decisions}));
      live = std::move(before);
      return;
    }
    case Statement::Kind::landing:
      live.merge(live_before(statement.blocks[0], live));
      live.insert(id({.kind = Variable::Kind::landing, .number = statement.level}));
      return;
    case Statement::Kind::loop:
      live = live_before(statement.blocks[0], live_around(statement, live));
      return;
  }
}

VariableSet Variables::live_around(const Statement& loop, const VariableSet& behind) const {
  VariableSet live = behind;
  live.insert(id({.kind = Variable::Kind::decisions}));
  for (;;) {
    const size_t count = live.size();
    live.merge(live_before(loop.blocks[0], live));
    if (live.size() == count) return live;
  }
}

}  // namespace janus::trace
