#include "lazy/segment_graph.h"

#include <algorithm>
#include <set>

#include "base/check.h"
#include "lazy/call_node.h"
#include "lazy/view_chain.h"
#include "ops/list.h"

namespace janus::lazy {

using graph::Builder;
using graph::Shape;
using graph::Type;
using graph::Value;

namespace {

class Generator {
 public:
  Generator(const Segment& segment, const VaryingNumbers& varying)
      : segment_(segment), varying_(varying), builder_(made_.graph) {
    states_.resize(segment.storages.size());
  }

  SegmentGraph generate() {
    find_cells();
    for (const Event* event : segment_.events) add(*event);
    finish();
    return std::move(made_);
  }

 private:
  /// What a storage holds now, as one tensor that covers it.
  struct State {
    Value* value = nullptr;
    Geometry geometry;
    int64_t offset = 0;
    struct Read {
      Geometry geometry;
      int64_t offset;
      Value* input;
    };
    std::vector<Read> reads;  ///< of a storage that is only read: each view is an input
  };

  State& state_of(const StorageNode& node) { return states_[node.number]; }

  /// A written storage is a cell in the largest geometry that a call sees it in.
  void find_cells() {
    for (const Event* event : segment_.events) {
      for (size_t k = 0; k < event->operands.size(); ++k) {
        const uint32_t number = event->operands[k].node->number;
        if (!segment_.storages[number].is_written) continue;
        const Geometry& geometry = event->kind->operands[k];
        State& state = states_[number];
        const bool is_first = has_cell_.insert(number).second;
        if (!is_first && !covers_more(geometry, state.geometry)) continue;
        state.geometry = geometry;
        state.offset = event->operands[k].offset;
      }
    }
    for (const uint32_t number : has_cell_) {
      State& state = states_[number];
      const std::string name = "s" + std::to_string(number);
      graph::Node* const node =
          builder_.append_unchecked(op::state, {}, {{"cell", name}}, {type_of(state.geometry)});
      state.value = node->output();
      made_.cells.push_back({name, number, state.geometry, state.offset});
    }
  }

  Value* read(const Event::Operand& operand, const Geometry& geometry) {
    State& state = state_of(*operand.node);
    if (state.value == nullptr) return input_of(operand, geometry, state);
    if (state.geometry == geometry && state.offset == operand.offset) return state.value;
    return chain(state, geometry, operand.offset).read(builder_, state.value);
  }

  static ViewChain chain(const State& state, const Geometry& geometry, int64_t offset) {
    auto made = ViewChain::between(state.geometry, geometry, offset - state.offset);
    if (!made || offset < state.offset) throw NotInGraph("a view is of a form that graphs lack");
    return *made;
  }

  Value* input_of(const Event::Operand& operand, const Geometry& geometry, State& state) {
    for (const State::Read& each : state.reads)
      if (each.geometry == geometry && each.offset == operand.offset) return each.input;
    Value* const made = builder_.input(type_of(geometry), "x" + std::to_string(++named_));
    made_.inputs.push_back(
        {.storage = operand.node->number, .geometry = geometry, .offset = operand.offset});
    state.reads.push_back({geometry, operand.offset, made});
    return made;
  }

  void write(const Event::Operand& operand, const Geometry& geometry, Value* value) {
    State& state = state_of(*operand.node);
    if (state.geometry == geometry && state.offset == operand.offset) {
      state.value = value;
      return;
    }
    const ViewChain views = chain(state, geometry, operand.offset);
    if (!views.can_write()) throw NotInGraph("it writes to a broadcast view");
    state.value = views.write(builder_, state.value, value);
  }

  Value* number(const c10::Scalar& value) {
    const size_t position = numbers_++;
    if (value.isComplex()) throw NotInGraph("a number is complex");
    if (!varying_[position]) {
      if (value.isFloatingPoint()) return builder_.constant(value.toDouble());
      if (value.isBoolean()) return builder_.constant(value.toBool());
      return builder_.constant(value.toLong());
    }
    const Type type = value.isFloatingPoint() ? Type::f64()
                      : value.isBoolean()     ? Type::boolean()
                                              : Type::i64();
    made_.inputs.push_back({.is_number = true, .number = position});
    return builder_.input(type, "n" + std::to_string(position));
  }

  void add(const Event& event) {
    const CallKind& kind = *event.kind;
    std::vector<Value*> operands, numbers;
    for (size_t k = 0; k < event.operands.size(); ++k)
      operands.push_back(read(event.operands[k], kind.operands[k]));
    for (const c10::Scalar& each : event.numbers) numbers.push_back(number(each));
    const std::vector<Value*> results = append_call(builder_, kind, operands, numbers);
    size_t next = 0;
    for (size_t i = 0; i < kind.results.size(); ++i) {
      if (const auto& written = kind.rule->result_is[i]) {
        write_argument(event, *written, results[i]);
      } else if (kind.results[i].is_defined) {
        State& state = state_of(*event.results[next++]);
        state.value = results[i];
        state.geometry = kind.results[i].geometry;
        state.offset = 0;
      }
    }
    for (const OperatorRule::UnsaidWrite& each : kind.rule->unsaid)
      if (each.result_of_native < results.size())
        write_argument(event, each.argument, results[each.result_of_native]);
  }

  void write_argument(const Event& event, size_t argument, Value* value) {
    const auto& places = event.kind->places;
    const auto place = std::ranges::find(places, argument, &OperandPlace::argument);
    if (place == places.end()) return;  // no running statistics are kept
    const auto k = static_cast<size_t>(place - places.begin());
    write(event.operands[k], event.kind->operands[k], value);
  }

  void finish() {
    graph::Block& body = made_.graph.body();
    for (size_t i = 0; i < segment_.storages.size(); ++i) {
      if (!segment_.storages[i].is_wanted) continue;
      const State& state = states_[i];
      made_.shown.push_back({body.results.size(),
                             Shape(state.geometry.strides.begin(), state.geometry.strides.end())});
      body.results.push_back(state.value);
      made_.results.push_back(i);
      made_.shapes.push_back(state.geometry);
    }
    for (const SegmentGraph::Cell& cell : made_.cells)
      builder_.append_unchecked(op::commit,
                                std::initializer_list<Value*>{states_[cell.storage].value},
                                {{"cell", cell.name}}, {});
  }

  const Segment& segment_;
  const VaryingNumbers& varying_;
  SegmentGraph made_;
  Builder builder_;
  std::vector<State> states_;
  std::set<uint32_t> has_cell_;
  size_t numbers_ = 0, named_ = 0;
};

}  // namespace

std::optional<SegmentGraph> graph_of(const Segment& segment, const VaryingNumbers& varying,
                                     std::string& why) {
  try {
    return Generator(segment, varying).generate();
  } catch (const NotInGraph& error) {
    why = error.what();
  } catch (const graph::TypeError& error) {
    why = error.what();
  }
  return std::nullopt;
}

}  // namespace janus::lazy
