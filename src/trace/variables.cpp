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
  for (NodeId id = 0; id < nodes.nodes.size(); ++id)
    for (uint32_t i = 0; i < nodes.nodes[id].inputs.size(); ++i) add_input(id, i);
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

void Variables::add_input(NodeId id, uint32_t index) {
  const Input& input = nodes_.nodes[id].inputs[index];
  if (input.sources.size() == 1 && is_input(input.sources[0])) return;
  const Variable variable = variable_of(input);
  if (ids_.contains(variable)) return;
  const VariableId own = add(variable);
  const std::vector<Source>& sources = variable.sources;
  const Source* early = early_slot(sources);
  for (const Source& source : sources) {
    if (is_input(source) || &source == early) continue;
    by_source_[source].push_back(own);
    if (source.kind != Source::Kind::slot) continue;
    const Input& first = nodes_.nodes[source.node].inputs[source.index];
    if (!slots_.is_early(first.slot) ||
        ids_.contains({.kind = Variable::Kind::untaken, .source = source}))
      continue;
    const VariableId flag = add({.kind = Variable::Kind::untaken, .source = source});
    for (const Source& other : first.sources)
      if (!is_input(other)) untaken_[other].push_back(flag);
  }
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

VariableId Variables::read_by(const Input& input) const {
  if (input.sources.size() == 1 && is_input(input.sources[0])) return kNone;
  return ids_.at(variable_of(input));
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

/// Visits what an event assigns, with the input in whose course it does (kNone: by its results) and
/// whether it may leave the variable as it is.
template <class Visit>
void Variables::for_each_assignment(NodeId id, Visit&& visit) const {
  const Node& node = nodes_.nodes[id];
  for (uint32_t i = 0; i < node.inputs.size(); ++i) {
    const SlotId slot = node.inputs[i].slot;
    if (slot == kNone) continue;
    if (const Variable position{.kind = Variable::Kind::slot, .number = slot}; has(position))
      visit(this->id(position), i, false);
    const Source source{.kind = Source::Kind::slot, .node = id, .index = i};
    const Variable flag{.kind = Variable::Kind::untaken, .source = source};
    for (const VariableId variable : assigned_by(source)) visit(variable, i, has(flag));
    for (const VariableId variable : untaken_until(source)) visit(variable, i, has(flag));
    if (has(flag)) visit(this->id(flag), i, false);
  }
  for (uint32_t r = 0; r < node.results.size(); ++r) {
    const Source source{.kind = Source::Kind::result, .node = id, .index = r};
    for (const VariableId variable : assigned_by(source)) visit(variable, kNone, false);
    for (const VariableId variable : untaken_until(source)) visit(variable, kNone, false);
    const Variable fetched{.kind = Variable::Kind::fetched, .source = {.node = id, .index = r}};
    if (has(fetched)) visit(this->id(fetched), kNone, false);
  }
  if (const CellId* cell = names_.operators.written_cell(node.key.op))
    visit(this->id({.kind = Variable::Kind::contents,
                    .source = {.kind = Source::Kind::cell, .cell = *cell}}),
          kNone, false);
}

void Variables::read(NodeId id, VariableSet& out) const {
  const Node& node = nodes_.nodes[id];
  std::map<VariableId, uint32_t> assigned;  // by the first input in whose course it is for certain
  for_each_assignment(id, [&](VariableId variable, uint32_t input, bool perhaps) {
    if (perhaps || variables_[variable].kind == Variable::Kind::slot ||
        variables_[variable].kind == Variable::Kind::untaken ||
        variables_[variable].kind == Variable::Kind::fetched)
      out.insert(variable);
    else if (input != kNone)
      assigned.try_emplace(variable, input);
  });
  for (uint32_t i = 0; i < node.inputs.size(); ++i) {
    const VariableId variable = read_by(node.inputs[i]);
    if (variable == kNone) continue;
    const auto found = assigned.find(variable);
    if (found == assigned.end() || found->second >= i) out.insert(variable);
  }
}

VariableSet Variables::assigned(const Statements& statements) const {
  VariableSet result;
  for (const Statement& statement : statements) {
    using Kind = Statement::Kind;
    if (statement.kind == Kind::event)
      for_each_assignment(statement.node,
                          [&](VariableId variable, uint32_t, bool) { result.insert(variable); });
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
      for_each_assignment(statement.node,
                          [&](VariableId variable, uint32_t, bool) { live.erase(variable); });
      read(statement.node, live);
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
