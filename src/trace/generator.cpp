#include "trace/generator.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/check.h"
#include "base/policy.h"
#include "graph/constant.h"
#include "ops/list.h"

namespace janus::trace {

using namespace graph;

// ---- Helpers ----------------------------------------------------------------------------------

/// Constants stand at the beginning, each once.
Value* Generator::constant(const AttributeValue& value) {
  graph::Node*& node = constants_[cat(value)];
  if (node == nullptr) {
    node = body_.constant_of(value)->definition;
    body_.block().nodes.pop_back();
  }
  return node->output();
}

Value* Generator::number(int64_t value) { return constant(value); }

Value* Generator::undefined(Builder& builder, const Type& type) {
  switch (type.kind) {
    case Type::Kind::i64:
      return number(0);
    case Type::Kind::f64:
      return constant(0.0);
    case Type::Kind::boolean:
      return constant(false);
    case Type::Kind::list:
      return builder.append_unchecked(op::list_new, {}, {}, {type})->output();
    default:
      return builder.append_unchecked(op::undefined, {}, {}, {type})->output();
  }
}

void Generator::deepen() {
  if (++depth_ > policy::kDeepestBranches) throw Refusal{"branches are nested too deeply"};
}

/// The position, which goes on by one. It stays a constant as long as it is known.
Value* Generator::next_position(Builder& builder, VariableId position) {
  Value* at = current_[position];
  const auto known = constant_integer(at);
  current_[position] = known ? number(*known + 1) : op::scalar_add(builder, {at, number(1)});
  return at;
}

Value* Generator::read_decision(Builder& builder) {
  Value* at = next_position(builder, variables_.id({.kind = Variable::Kind::decisions}));
  return op::list_item(builder, {decisions_, at});
}

/// The text "file:line" of a location; any other text is the name of a file.
SourceSpan Generator::span_of(const std::string& location) {
  if (const auto found = spans_.find(location); found != spans_.end()) return found->second;
  SourceSpan& span = spans_[location];
  const size_t colon = location.rfind(':');
  if (colon != std::string::npos)
    std::from_chars(location.data() + colon + 1, location.data() + location.size(), span.line);
  span.end_line = span.line;
  span.file = std::make_shared<const std::string>(
      location.substr(0, span.line == 0 ? location.npos : colon));
  return span;
}

// ---- Events -----------------------------------------------------------------------------------

void Generator::emit(Builder& builder, std::span<const Statement> statements,
                     const VariableSet& behind) {
  for (size_t i = 0; i < statements.size(); ++i) {
    const Statement& statement = statements[i];
    const auto live = [&] { return variables_.live_before(statements.subspan(i + 1), behind); };
    switch (statement.kind) {
      case Statement::Kind::event:
        emit_event(builder, statement.node);
        break;
      case Statement::Kind::jump:
        current_[variables_.id({.kind = Variable::Kind::landing, .number = statement.level})] =
            number(statement.node == kEnd ? -1 : int64_t{statement.node});
        break;
      case Statement::Kind::select:
        emit_select(builder, statement.blocks, 0, read_decision(builder), live());
        break;
      case Statement::Kind::landing:
        emit_landing(builder, statement, live());
        break;
      case Statement::Kind::loop:
        emit_loop(builder, statement, live());
        break;
    }
  }
}

void Generator::emit_event(Builder& builder, NodeId id) {
  const Node& node = nodes_.nodes[id];
  builder.set_span(span_of(traces_.names().location(node.key.location)));
  std::vector<Value*> operands;
  for (uint32_t i = 0; i < node.inputs.size(); ++i)
    operands.push_back(read_operand(builder, id, i));
  if (const CellId* cell = traces_.names().operators.written_cell(node.key.op)) {
    current_[variables_.id({.kind = Variable::Kind::contents,
                            .source = {.kind = Source::Kind::cell, .cell = *cell}})] = operands[0];
    return;
  }
  const std::vector<Value*> results = compute(builder, node, operands);
  for (uint32_t r = 0; r < results.size(); ++r) give_result(builder, id, r, results[r]);
}

Value* Generator::read_operand(Builder& builder, NodeId id, uint32_t index) {
  const Input& input = nodes_.nodes[id].inputs[index];
  const VariableId variable = variables_.read_by(id, index);
  if (variable == kNone && input.slot == kNone) return cells_.at(input.sources[0].cell);
  const Source slot{.kind = Source::Kind::slot, .node = id, .index = index};
  if (variable == kNone) {
    Value* value = read_slot(builder, input.slot);
    assign(slot, value);
    return value;
  }
  Value* value = current_[variable];
  // A way that is never taken, such as one to a later trip in the first trip.
  if (value == nullptr) value = undefined(builder, type_of(variable));
  if (input.slot != kNone) take_early_feed(builder, slot, input.slot);
  return value;
}

Value* Generator::read_slot(Builder& builder, SlotId slot) {
  Value* given = slot_inputs_[slot];
  switch (slots_.given(slot)) {
    case Given::always:
      return given;
    case Given::perhaps:
      return op::list_item(builder, {given, number(0)});
    case Given::repeatedly:
      break;
  }
  Value* at = next_position(builder, variables_.id({.kind = Variable::Kind::slot, .number = slot}));
  return op::list_item(builder, {given, at});
}

/// An input takes its early feed if none of its other sources has been executed: if the feed is
/// untaken until then. Then it is the latest source of the inputs that name it.
void Generator::take_early_feed(Builder& builder, const Source& source, SlotId slot) {
  const Variable flag{.kind = Variable::Kind::untaken, .source = source};
  if (!variables_.has(flag)) return;
  Value* untaken = current_[variables_.id(flag)];
  const std::vector<VariableId>& targets = variables_.assigned_by(source);
  const std::vector<VariableId>& others = variables_.untaken_until(source);
  VariableSet assigned(targets.begin(), targets.end());
  assigned.insert(others.begin(), others.end());
  emit_if(
      builder, untaken, assigned, assigned, [&](Builder&) { assign(source, early_.at(slot)); },
      [](Builder&) {});
  current_[variables_.id(flag)] = constant(false);
}

void Generator::assign(const Source& source, Value* value) {
  for (const VariableId variable : variables_.assigned_by(source)) current_[variable] = value;
  for (const VariableId variable : variables_.untaken_until(source))
    current_[variable] = constant(false);
}

std::vector<Value*> Generator::compute(Builder& builder, const Node& node,
                                       std::span<Value* const> operands) {
  const Operator& op = traces_.names().operators[node.key.op];
  if (emitter_ != nullptr)
    if (auto values =
            emitter_->emit(builder, op, node.sizes.symbolic().shape, operands, node.results)) {
      TORCHJANUS_CHECK(values->size() == node.results.size(), "trace: an emitter gave ",
                       values->size(), " results for ", op);
      for (size_t i = 0; i < values->size(); ++i)
        TORCHJANUS_CHECK(can_be((*values)[i]->type, node.results[i]), "trace: an emitter gave ",
                         (*values)[i]->type, " for ", op);
      return *std::move(values);
    }
  auto emitted = emit_operator(builder, op, operands, node.results);
  if (auto* refusal = std::get_if<Refusal>(&emitted))
    throw Refusal{cat(refusal->reason, ", at ", traces_.names().location(node.key.location))};
  return std::get<std::vector<Value*>>(std::move(emitted));
}

void Generator::give_result(Builder& builder, NodeId id, uint32_t result, Value* value) {
  assign({.kind = Source::Kind::result, .node = id, .index = result}, value);
  if (!nodes_.nodes[id].fetched[result]) return;
  const Source source{.node = id, .index = result};
  if (slots_.executed(id) == Given::always) {
    fetched_[source] = value;
    return;
  }
  const VariableId list = variables_.id({.kind = Variable::Kind::fetched, .source = source});
  const Type type = Type::list(value->type);
  if (current_[list]->type != type) throw TypeLearned{list, type};
  current_[list] = op::list_push(builder, {current_[list], value});
}

// ---- Branches ---------------------------------------------------------------------------------

void Generator::emit_select(Builder& builder, std::span<const Statements> blocks, int64_t first,
                            Value* decision, const VariableSet& behind) {
  if (blocks.size() == 1) return emit(builder, blocks[0], behind);
  VariableSet assigned;
  for (const Statements& block : blocks) assigned.merge(variables_.assigned(block));
  emit_if(
      builder, op::scalar_eq(builder, {decision, number(first)}), assigned, behind,
      [&](Builder& then) { emit(then, blocks[0], behind); },
      [&](Builder& otherwise) {
        emit_select(otherwise, blocks.subspan(1), first + 1, decision, behind);
      });
}

void Generator::emit_landing(Builder& builder, const Statement& landing,
                             const VariableSet& behind) {
  Value* target =
      current_[variables_.id({.kind = Variable::Kind::landing, .number = landing.level})];
  Value* lands = op::scalar_eq(builder, {target, number(landing.node)});
  emit_if(
      builder, lands, variables_.assigned(landing.blocks[0]), behind,
      [&](Builder& then) { emit(then, landing.blocks[0], behind); }, [](Builder&) {});
}

/// An `if` whose results are the variables that a side assigned and that are read behind it.
void Generator::emit_if(Builder& builder, Value* condition, const VariableSet& assigned,
                        const VariableSet& behind, const Fill& then, const Fill& otherwise) {
  deepen();
  Graph& graph = generated_.graph;
  graph::Node* node = graph.new_node(op::if_);
  node->inputs = {condition};
  const std::vector<Value*> before = current_;
  Builder first(graph, node->add_block());
  then(first);
  const std::vector<Value*> one = std::exchange(current_, before);
  Builder second(graph, node->add_block());
  otherwise(second);
  const std::vector<Value*> other = std::exchange(current_, before);
  std::map<std::pair<Value*, Value*>, Value*> outputs;  // variables of the same values share them
  for (const VariableId id : assigned) {
    Value *a = one[id], *b = other[id];
    current_[id] = a == b ? a : nullptr;
    if (a == b || !behind.contains(id)) continue;
    if (a == nullptr) a = undefined(first, b->type);
    if (b == nullptr) b = undefined(second, a->type);
    if (a->type != b->type)
      throw Refusal{cat("a value is ", a->type, " or ", b->type, ", by the way that is taken")};
    Value*& output = outputs[{a, b}];
    if (output == nullptr) {
      first.block().results.push_back(a);
      second.block().results.push_back(b);
      output = graph.new_output(*node, a->type);
    }
    current_[id] = output;
  }
  if (!first.block().nodes.empty() || !second.block().nodes.empty() || !node->outputs.empty())
    graph.append(builder.block(), node);
  --depth_;
}

// ---- Loops ------------------------------------------------------------------------------------

void Generator::emit_loop(Builder& builder, const Statement& loop, const VariableSet& behind) {
  const int64_t trips = nodes_.nodes[loop.node].fixed_trips;
  if (trips == 0) return emit_while(builder, loop, behind);
  const VariableSet live = trips == 1 ? behind : variables_.live_around(loop, behind);
  for (int64_t i = 0; i < trips; ++i) emit(builder, loop.blocks[0], i + 1 == trips ? behind : live);
}

void Generator::emit_while(Builder& builder, const Statement& loop, const VariableSet& behind) {
  deepen();
  Graph& graph = generated_.graph;
  graph::Node* node = graph.new_node(op::while_);
  node->attributes.set("minimum", int64_t{1});
  Block &condition = node->add_block(), &body = node->add_block();
  Builder inside(graph, body);
  const VariableSet live = variables_.live_around(loop, behind);
  const std::vector<Carried> carried = carried_by(builder, loop, live);
  for (const Carried& each : carried) {
    if (each.start == nullptr) continue;
    node->inputs.push_back(each.start);
    current_[each.variable] = graph.new_parameter(body, each.start->type);
  }
  emit(inside, loop.blocks[0], live);
  Value* again = op::scalar_eq(inside, {read_decision(inside), number(1)});
  close_loop(builder, *node, carried);
  node->inputs.push_back(constant(true));
  graph.new_parameter(body, Type::boolean());
  body.results.push_back(again);
  graph.new_output(*node, Type::boolean());
  for (const Value* input : node->inputs) graph.new_parameter(condition, input->type);
  condition.results = {condition.parameters.back()};
  graph.append(builder.block(), node);
  --depth_;
}

/// What a loop carries from trip to trip: the variables that it assigns, unless nobody reads them.
std::vector<Generator::Carried> Generator::carried_by(Builder& builder, const Statement& loop,
                                                      const VariableSet& live) {
  const VariableSet before = variables_.live_before(loop.blocks[0], live);
  VariableSet assigned = variables_.assigned(loop.blocks[0]);
  assigned.insert(variables_.id({.kind = Variable::Kind::decisions}));
  std::vector<Carried> result;
  for (const VariableId id : assigned) {
    Value* start = std::exchange(current_[id], nullptr);
    if (!live.contains(id)) continue;
    if (!before.contains(id)) start = nullptr;
    if (start == nullptr && before.contains(id)) start = undefined(builder, type_of(id));
    result.push_back({id, start});
  }
  return result;
}

/// Adds the results of the body and of the loop. Variables that are assigned before they are read
/// have no beginning. They share a result with another one of the same value, if there is one.
void Generator::close_loop(Builder& builder, graph::Node& node, std::span<const Carried> carried) {
  Graph& graph = generated_.graph;
  Block& body = *node.blocks[1];
  std::vector<Value*> next;
  for (const Carried& each : carried) next.push_back(current_[each.variable]);
  for (size_t i = 0; i < carried.size(); ++i) {
    const auto& [variable, start] = carried[i];
    TORCHJANUS_CHECK(next[i] != nullptr, "trace: a loop carries a variable without a value");
    if (start == nullptr) continue;
    check_carried(variable, *start, *next[i]);
    body.results.push_back(next[i]);
    current_[variable] = graph.new_output(node, start->type);
  }
  for (size_t i = 0; i < carried.size(); ++i) {
    if (carried[i].start != nullptr) continue;
    const auto found = std::find(body.results.begin(), body.results.end(), next[i]);
    const auto result = static_cast<size_t>(found - body.results.begin());
    if (found == body.results.end()) {
      node.inputs.push_back(undefined(builder, next[i]->type));
      graph.new_parameter(body, next[i]->type);
      body.results.push_back(next[i]);
      graph.new_output(node, next[i]->type);
    }
    current_[carried[i].variable] = node.outputs[result];
  }
}

void Generator::check_carried(VariableId variable, const Value& start, const Value& next) {
  if (start.type == next.type) return;
  if (start.definition != nullptr && start.definition->op == &op::undefined)
    throw TypeLearned{variable, next.type};
  throw Refusal{cat("a value is ", start.type, " before a loop and ", next.type, " in it")};
}

}  // namespace janus::trace
