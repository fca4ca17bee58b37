// See lowering.h.
#include "execute/code/lowering.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "base/options.h"
#include "execute/code/container_operators.h"
#include "execute/code/last_uses.h"
#include "execute/code/schedule.h"
#include "execute/code/shown_strides.h"
#include "execute/library/findings.h"
#include "execute/values/numbers.h"
#include "graph/cost.h"
#include "graph/functions.h"
#include "graph/op.h"
#include "graph/run_time_symbols.h"
#include "kernels/compilation.h"
#include "ops/list.h"
#include "ops/rows.h"
#include "ops/structure.h"

namespace janus::execute {

using graph::Block;
using graph::Node;
using graph::Trait;
using graph::Type;
using graph::Value;

namespace {

bool is_plain(const Type& type) { return type.is_number() || type.is_none(); }

/// Whether the value may hold tensors that it was given.
bool holds_values(const Value* value) {
  const Type* type = &value->type;
  while (type->kind == Type::Kind::list) type = &type->elements.front();
  return type != &value->type ? !type->is_number() : type->kind == Type::Kind::frame;
}

Slot constant_slot(const Node& node) {
  const Type& type = node.output()->type;
  switch (type.kind) {
    case Type::Kind::boolean:
      return Slot::of(node.attributes.get<bool>("value"));
    case Type::Kind::i64:
      return Slot::of(node.attributes.get<int64_t>("value"));
    case Type::Kind::f64:
      return Slot::of(node.attributes.get<double>("value"));
    default:
      return Slot::none();
  }
}

class Maker {
 public:
  Maker(const graph::Graph& graph, std::span<const ShownResult> shown)
      : graph_(graph), behind_shown_(nodes_behind(graph, shown)) {
    for (const ShownResult& result : shown)
      if (result.strides) code_.result_strides.emplace(result.index, *result.strides);
    code_.slot_count = graph.value_count();
    same_.resize(graph.value_count());
    std::iota(same_.begin(), same_.end(), 0U);
  }

  Code make() {
    find_cells();
    graph::for_each_node(graph_.body(), [&](const Node& node) {
      if (node.op == &op::function)
        code_.functions.emplace(graph::function_name(node), std::make_unique<Sequence>());
    });
    const Schedule schedule = make_schedule(graph_.body());
    code_.body.instructions.reserve(schedule.order.size());
    code_.body.parameters = slots_of(graph_.body().parameters);
    for (size_t n = 0; n < schedule.order.size(); ++n) {
      if (n == schedule.tail) code_.tail = code_.body.instructions.size();
      add(*schedule.order[n], code_.body);
    }
    if (schedule.tail == schedule.order.size()) code_.tail = code_.body.instructions.size();
    code_.body.results = slots_of(graph_.body().results);
    for (const Node* node : schedule.writes) add_write(*node);
    code_.hands_out_containers =
        std::any_of(graph_.body().results.begin(), graph_.body().results.end(), holds_values);
    code_.run_time_symbols = graph::symbols_given_in(graph_.body());
    code_.can_be_planned = (code_.commits.empty() || !code_.hands_out_containers) &&
                           code_.run_time_symbols.empty() && !options().is_disabled("memory_plan");
    code_.run_time_symbols.insert(rows_symbols_.begin(), rows_symbols_.end());
    std::unordered_set<uint32_t> kept(code_.body.results.begin(), code_.body.results.end());
    for (const auto* writes : {&code_.commits, &code_.rebinds}) {
      for (const Write& write : *writes) {
        kept.insert(write.slot);
        if (write.second) kept.insert(*write.second);
      }
    }
    mark_dead(code_.body, kept);
    find_objects();
    return std::move(code_);
  }

 private:
  uint32_t slot_of(const Value* value) const { return same_[value->id]; }

  std::vector<uint32_t> slots_of(const std::vector<Value*>& values) const {
    std::vector<uint32_t> slots;
    for (const Value* value : values) slots.push_back(slot_of(value));
    return slots;
  }

  void find_cells() {
    graph::for_each_node(graph_.body(), [&](const Node& node) {
      if (node.op != &op::state && node.op != &op::commit && node.op != &op::rebind) return;
      const auto& name = node.attributes.get<std::string>("cell");
      if (cell_numbers_.try_emplace(name, code_.cells.size()).second) code_.cells.push_back(name);
    });
  }

  size_t cell_of(const Node& node) const {
    return cell_numbers_.at(node.attributes.get<std::string>("cell"));
  }

  void add_write(const Node& node) {
    Write write{&node, slot_of(node.inputs[0]), cell_of(node)};
    if (node.inputs.size() > 1) write.second = slot_of(node.inputs[1]);
    write.keeps = node.attributes.get_or<int64_t>("keeps", 0) != 0;
    (node.op == &op::commit ? code_.commits : code_.rebinds).push_back(write);
  }

  void add(const Node& node, Sequence& sequence) {
    if (node.op == &op::state) {
      code_.cell_reads.emplace_back(node.output()->id, cell_of(node));
      return;
    }
    if (node.op == &op::constant && is_plain(node.output()->type)) {
      code_.constants.push_back({node.output()->id, constant_slot(node)});
      return;
    }
    if (node.op == &op::undefined) return;  // its slot stays empty
    if (node.op == &op::function) return add_function(node);
    if (node.op == &op::object_constant) {
      code_.objects.emplace_back(node.output()->id, node.attributes.get<int64_t>("object"));
      return;
    }
    if (node.op == &op::detach ||
        node.op == &op::stop_fuse) {  // the value itself: it has the operand's slot
      same_[node.output()->id] = slot_of(node.inputs[0]);
      return;
    }
    Instruction instruction;
    instruction.node = &node;
    instruction.inputs = slots_of(node.inputs);
    instruction.outputs = slots_of(node.outputs);
    instruction.shows_strides = behind_shown_.contains(&node);
    code_.random |= draws(node);
    choose_action(node, instruction);
    graph::for_each_run(node, [&](const Node& run) {
      instruction.keeps_operands |=
          run.op == &op::opaque && !ops::recorded_operands(run.attributes).empty();
    });
    for (const Value* value : used_values(node)) instruction.used.push_back(slot_of(value));
    if (&sequence == &code_.body && instruction.action == Action::container)
      instruction = as_block(std::move(instruction));
    sequence.instructions.push_back(std::move(instruction));
  }

  /// An operator on containers in the body as a block that is always taken: what blocks give is the
  /// plan's to lay out, what containers hold is not.
  Instruction as_block(Instruction inner) {
    Instruction outer = inner;
    outer.action = Action::choose;
    const auto always = static_cast<uint32_t>(code_.slot_count++);
    code_.constants.push_back({always, Slot::of(true)});
    outer.inputs = {always};
    outer.used.push_back(always);
    Sequence taken;
    for (uint32_t& slot : inner.outputs) {
      slot = static_cast<uint32_t>(code_.slot_count++);
      taken.results.push_back(slot);
      taken.own_results.push_back(true);
    }
    taken.instructions.push_back(std::move(inner));
    outer.blocks.push_back(std::move(taken));
    outer.blocks.emplace_back();
    code_.control = true;
    return outer;
  }

  void choose_action(const Node& node, Instruction& instruction) {
    if (node.op == &op::guard) {
      instruction.action = Action::guard;
    } else if (node.op == &op::size) {
      instruction.action = Action::size;
    } else if (node.op == &op::dimension) {
      instruction.action = Action::dimension;
    } else if (node.op == &op::item && can_read_item(node)) {
      instruction.action = Action::item;
    } else if (node.op == &op::fused) {
      instruction.action = Action::kernel;
      instruction.kernel = kernels::kernel_of(node);
    } else if (node.op == &op::call) {
      code_.control = true;
      instruction.action = Action::call;
      instruction.function = code_.functions.at(graph::function_name(node)).get();
    } else if (node.op == &op::object_is) {
      instruction.action = Action::identity;
    } else if (node.op->is(Trait::reads_heap)) {
      instruction.action = Action::heap;
      instruction.operation = code_.heap_reads.size();
      code_.heap_reads.push_back(&node);
      code_.read_kinds.push_back(Findings::kind_of(node));
    } else if (node.op == &op::if_ || node.op == &op::while_) {
      instruction.action = node.op == &op::if_ ? Action::choose : Action::loop;
      add_blocks(node, instruction);
    } else if (node.op == &op::rows) {
      instruction.action = Action::rows;
      instruction.operation = static_cast<size_t>(node.attributes.get<int64_t>("kind"));
      instruction.rank = static_cast<uint32_t>(node.attributes.get<int64_t>("rank"));
      code_.has_rows = true;
      instruction.sums = static_cast<size_t>(node.attributes.get<int64_t>("sums"));
      rows_symbols_.insert(node.attributes.get<std::string>("symbol"));
      add_blocks(node, instruction);
      instruction.least_rows = least_rows(instruction);
      check_outer_values(node);
    } else if (is_container_operator(*node.op)) {
      instruction.action = Action::container;
    } else if (const ops::NumberFunction number = node.op->number) {
      instruction.action = Action::number;
      instruction.number = number;
    } else {
      instruction.action = Action::operation;
      instruction.operation = code_.operations.size();
      code_.operations.push_back(&node);
      instruction.is_view =
          node.op->is(Trait::view) && node.inputs.size() == 1 && node.outputs.size() == 1;
      code_.needs_unlock |= node.op == &op::opaque || node.op == &op::opaque_backward ||
                            node.op->is(Trait::communicates);
    }
  }

  /// What stands in a function may be gone by the time that its `rows` are computed.
  void check_outer_values(const Node& rows) const {
    for (const Value* value : used_values(rows)) {
      const Node* definition = value->definition;
      const bool stays = definition == nullptr ? value->owner == &graph_.body()
                                               : definition->parent == &graph_.body() ||
                                                     definition->op == &op::constant;
      const bool is_operand =
          std::find(rows.inputs.begin(), rows.inputs.end(), value) != rows.inputs.end();
      TORCHJANUS_CHECK(stays || is_operand, "rows: uses a value of a function");
    }
  }

  /// The largest matrix of a product that is one for all rows.
  static double bytes_of_matrix(const Node& product) {
    double most = 0;
    for (const Value* input : product.inputs)
      if (input->type.is_tensor() && input->type.rank() == 2)
        most = std::max(most, graph::typical_elements(input->type) *
                                  static_cast<double>(graph::byte_size(input->type.dtype)));
    return most;
  }

  /// By what instructions cost on small tensors, in views (graph/cost.h). Gathering the rows costs
  /// twelve, and one for each operand. The batch should take half as long, as estimates go.
  static size_t least_rows(const Instruction& rows) {
    const auto time = [](const Sequence& sequence) {
      double sum = 0;
      for (const Instruction& each : sequence.instructions) {
        sum += each.node->op->is(Trait::product) ? graph::product_cost(bytes_of_matrix(*each.node))
               : each.is_view                    ? graph::kViewCost
               : each.action == Action::kernel   ? graph::kKernelCost
                                                 : graph::kOperatorCost;
      }
      return sum;
    };
    const double together = 12 + static_cast<double>(rows.inputs.size()) + time(rows.blocks[0]);
    return static_cast<size_t>(std::ceil(2.5 * together / std::max(1.0, time(rows.blocks[1]))));
  }

  void add_blocks(const Node& node, Instruction& instruction) {
    code_.control = true;
    for (const auto& block : node.blocks) {
      instruction.blocks.emplace_back();
      add_block(*block, instruction.blocks.back());
    }
  }

  void add_function(const Node& node) {
    Sequence& sequence = *code_.functions.at(graph::function_name(node));
    add_block(*node.blocks.front(), sequence);
    mark_lives(node, sequence);
  }

  void add_block(const Block& block, Sequence& sequence) {
    sequence.parameters = slots_of(block.parameters);
    sequence.instructions.reserve(block.nodes.size());
    for (const Node* nested : block.nodes) {
      TORCHJANUS_CHECK(nested->op != &op::commit && nested->op != &op::rebind,
                       "make_code: a write to a cell inside a block");
      add(*nested, sequence);
    }
    sequence.results = slots_of(block.results);
    mark_repeated(sequence);
    mark_uses(sequence);
    mark_dead(sequence, {sequence.results.begin(), sequence.results.end()});
  }

  void mark_repeated(Sequence& sequence) {
    size_t in_block = 0;
    for (Instruction& instruction : sequence.instructions) {
      instruction.repeated_in_block = in_block++;
      if (instruction.action == Action::kernel || instruction.action == Action::operation)
        instruction.repeated = code_.repeated_count++;
    }
  }

  void find_objects() {
    const auto is_object = [](const Value* value) {
      return value->type.kind == Type::Kind::object;
    };
    code_.uses_objects = std::any_of(graph_.inputs().begin(), graph_.inputs().end(), is_object);
    graph::for_each_node(graph_.body(), [&](const Node& node) {
      code_.uses_objects |= node.op->is(Trait::reads_heap) ||
                            std::any_of(node.outputs.begin(), node.outputs.end(), is_object);
    });
  }

  const graph::Graph& graph_;
  const std::unordered_set<const Node*> behind_shown_;
  Code code_;
  std::vector<uint32_t> same_;  // slot by value id
  std::set<std::string> rows_symbols_;
  std::unordered_map<std::string, size_t> cell_numbers_;
};

}  // namespace

Code make_code(const graph::Graph& graph, std::span<const ShownResult> shown) {
  return Maker(graph, shown).make();
}

}  // namespace janus::execute
