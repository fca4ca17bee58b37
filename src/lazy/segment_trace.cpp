#include "lazy/segment_trace.h"

#include <algorithm>

#include "lazy/call_node.h"

namespace janus::lazy {

using trace::Operand;

namespace {

/// The table lacks the operator.
struct Unknown {
  std::string name;
};

class Tracer {
 public:
  Tracer(const RecordedSegment& segment, const FamilyCells& cells, CallForms& forms,
         SegmentOperators& operators, trace::Names& names)
      : segment_(segment), cells_(cells), forms_(forms), operators_(operators), names_(names) {
    states_.resize(segment.storages.size());
  }

  SegmentTrace run() {
    find_bases();
    try {
      for (const RecordedSegment::Call& call : segment_.calls) add(call);
      finish();
    } catch (Unknown& unknown) {
      made_.unknown = std::move(unknown.name);
    }
    return std::move(made_);
  }

 private:
  /// What a storage holds now, as one value that covers it.
  struct State {
    bool has_base = false;         ///< else each view of it is fed
    std::optional<Operand> value;  ///< nothing: what it held before
    Geometry geometry;
    int64_t offset = 0;
    std::optional<size_t> cell;
    std::optional<uint32_t> feed;
    struct View {
      Geometry geometry;
      int64_t offset = 0;
      Operand value;
    };
    std::vector<View> views;  ///< of the value at hand; of a storage without base, the feeds
  };

  void find_bases() {
    for (size_t i = 0; i < states_.size(); ++i) {
      const RecordedSegment::Storage& storage = segment_.storages[i];
      if (storage.is_made) continue;
      State& state = states_[i];
      const auto cell = cells_.of(storage.identity);
      if (cell && (cells_[*cell].is_written || !storage.is_written)) {
        state.cell = cell;
        state.has_base = true;
        state.geometry = cells_[*cell].geometry;
        state.offset = cells_[*cell].offset;
      } else {
        state.has_base = storage.is_written;
      }
    }
    for (const RecordedSegment::Call& call : segment_.calls)
      for (size_t k = 0; k < call.operands.size(); ++k) widen(call, k);
  }

  /// A written storage that is no cell is fed in the largest geometry that a call sees it in.
  void widen(const RecordedSegment::Call& call, size_t operand) {
    const uint32_t storage = call.operands[operand].storage;
    State& state = states_[storage];
    if (segment_.storages[storage].is_made || !state.has_base || state.cell) return;
    const Geometry& geometry = call.kind->operands[operand];
    const bool is_first = seen_.insert(storage).second;
    if (!is_first && !covers_more(geometry, state.geometry)) return;
    state.geometry = geometry;
    state.offset = call.operands[operand].offset;
  }

  // ---- Reading

  /// Appends the event of a view, where the operand is one that is not there yet.
  void prepare(uint32_t storage, const Geometry& geometry, int64_t offset) {
    State& state = states_[storage];
    if (!state.has_base || is_base(state, geometry, offset) || find(state, geometry, offset))
      return;
    const auto chain = chain_to(state, geometry, offset);
    if (!chain) {
      const bool is_as_before =
          state.cell && !state.value && !segment_.storages[storage].is_written;
      if (!is_as_before) throw NotInGraph("a view is of a form that graphs lack");
      return;  // it is fed
    }
    trace::Event event{.op = of_view(*chain, false), .sizes = chain->sizes()};
    event.operands.push_back(base(storage));
    event.results.push_back(type_of(geometry));
    state.views.push_back({geometry, offset, append(std::move(event))});
  }

  Operand read(uint32_t storage, const Geometry& geometry, int64_t offset) {
    State& state = states_[storage];
    if (state.has_base && is_base(state, geometry, offset)) return base(storage);
    if (const Operand* found = find(state, geometry, offset)) return *found;
    const Operand made = feed(storage, geometry, offset);
    state.views.push_back({geometry, offset, made});
    return made;
  }

  static bool is_base(const State& state, const Geometry& geometry, int64_t offset) {
    return state.geometry == geometry && state.offset == offset;
  }

  static const Operand* find(const State& state, const Geometry& geometry, int64_t offset) {
    for (const State::View& each : state.views)
      if (each.geometry == geometry && each.offset == offset) return &each.value;
    return nullptr;
  }

  static std::optional<ViewChain> chain_to(const State& state, const Geometry& geometry,
                                           int64_t offset) {
    if (offset < state.offset) return std::nullopt;
    return ViewChain::between(state.geometry, geometry, offset - state.offset);
  }

  trace::OperatorId of_view(const ViewChain& chain, bool is_write) {
    const auto op = operators_.of_view(chain, is_write);
    if (!op) throw Unknown{is_write ? "a write to a view" : "a view"};
    return *op;
  }

  Operand base(uint32_t storage) {
    State& state = states_[storage];
    if (state.value) return *state.value;
    if (state.cell) {
      made_.cells[*state.cell] = storage;
      location_ = *state.cell + 1;
      return Operand::of_cell(*state.cell, type_of(state.geometry));
    }
    if (!state.feed) {
      state.feed = static_cast<uint32_t>(made_.feeds.size());
      made_.feeds.push_back({storage, state.geometry, state.offset});
    }
    return Operand::feed(*state.feed, type_of(state.geometry));
  }

  Operand feed(uint32_t storage, const Geometry& geometry, int64_t offset) {
    const auto number = static_cast<uint32_t>(made_.feeds.size());
    made_.feeds.push_back({storage, geometry, offset});
    return Operand::feed(number, type_of(geometry));
  }

  // ---- Calls

  void add(const RecordedSegment::Call& call) {
    const CallKind& kind = *call.kind;
    const CallForm& form = forms_.of(kind);
    const auto op = operators_.of_call(form, kind, call.numbers);
    if (!op) throw Unknown{kind.rule->overload.schema().name()};
    for (size_t k = 0; k < call.operands.size(); ++k)
      prepare(call.operands[k].storage, kind.operands[k], call.operands[k].offset);
    trace::Event event{.op = *op, .sizes = form.sizes};
    for (size_t k = 0; k < call.operands.size(); ++k)
      event.operands.push_back(
          read(call.operands[k].storage, kind.operands[k], call.operands[k].offset));
    for (size_t i = 0; i < call.numbers.size(); ++i)
      if (operators_.varies(form, i)) event.operands.push_back(number(call.numbers[i]));
    for (const CallForm::Result& each : form.results) event.results.push_back(each.type);
    const Operand first = append(std::move(event));

    size_t next = 0;
    for (uint32_t i = 0; i < form.results.size(); ++i) {
      const CallForm::Result& result = form.results[i];
      const Operand value = Operand::of_result(first.index, i);
      if (!result.is_made) {
        write(call.operands[result.operand].storage, kind.operands[result.operand],
              call.operands[result.operand].offset, value);
        continue;
      }
      State& state = states_[call.results[next++]];
      state.has_base = true;
      state.value = value;
      state.geometry = kind.results[result.of_append].geometry;
      state.views.clear();
    }
  }

  Operand number(const c10::Scalar& value) {
    made_.numbers.push_back(value);
    return Operand::number(value.isFloatingPoint() ? graph::Type::f64()
                           : value.isBoolean()     ? graph::Type::boolean()
                                                   : graph::Type::i64());
  }

  void write(uint32_t storage, const Geometry& geometry, int64_t offset, const Operand& value) {
    State& state = states_[storage];
    Operand contents = value;
    if (!is_base(state, geometry, offset)) {
      const auto chain = chain_to(state, geometry, offset);
      if (!chain) throw NotInGraph("a view is of a form that graphs lack");
      if (!chain->can_write()) throw NotInGraph("it writes to a broadcast view");
      trace::Event event{.op = of_view(*chain, true), .sizes = chain->sizes()};
      event.operands = {base(storage), value};
      event.results.push_back(type_of(state.geometry));
      contents = append(std::move(event));
    }
    state.value = contents;
    state.views.clear();
    if (contents.index != value.index) state.views.push_back({geometry, offset, value});
  }

  /// The first result.
  Operand append(trace::Event event) {
    event.location = location_;
    made_.trace.events.push_back(std::move(event));
    return Operand::of_result(static_cast<uint32_t>(made_.trace.events.size()) - 1);
  }

  // ---- The end

  void finish() {
    std::map<size_t, Operand> written;
    for (uint32_t i = 0; i < states_.size(); ++i) {
      const State& state = states_[i];
      const RecordedSegment::Storage& storage = segment_.storages[i];
      if (storage.is_written && state.cell && state.value) {
        made_.cells[*state.cell] = i;
        written.emplace(*state.cell, *state.value);
      } else if (state.value && (storage.is_written || storage.is_wanted)) {
        made_.finals.push_back({i, state.geometry, state.offset});
        made_.trace.fetches.push_back({state.value->index, state.value->result});
      }
    }
    for (const auto& [cell, value] : written) {
      location_ = cell + 1;
      append({.op = names_.operators.write(cell), .operands = {value}});
    }
  }

  const RecordedSegment& segment_;
  const FamilyCells& cells_;
  CallForms& forms_;
  SegmentOperators& operators_;
  trace::Names& names_;
  SegmentTrace made_;
  std::vector<State> states_;  // by storage
  /// The cell that was used last tells where in the program a call is: in which layer.
  trace::Location location_ = 0;
  std::set<uint32_t> seen_;
};

}  // namespace

FamilyCells::FamilyCells(std::span<const RecordedSegment> segments,
                         const StorageIdentities& identities) {
  for (const RecordedSegment& segment : segments)
    for (const RecordedSegment::Call& call : segment.calls)
      for (size_t k = 0; k < call.operands.size(); ++k) {
        const RecordedSegment::Storage& storage = segment.storages[call.operands[k].storage];
        if (storage.is_made || !identities.is_lasting(storage.identity)) continue;
        const auto [found, is_new] = by_identity_.try_emplace(storage.identity, cells_.size());
        if (is_new) cells_.push_back({.identity = storage.identity});
        Cell& cell = cells_[found->second];
        cell.is_written |= storage.is_written;
        const Geometry& geometry = call.kind->operands[k];
        if (!is_new && !covers_more(geometry, cell.geometry)) continue;
        cell.geometry = geometry;
        cell.offset = call.operands[k].offset;
      }
}

std::optional<size_t> FamilyCells::of(StorageIdentity identity) const {
  const auto found = by_identity_.find(identity);
  return found == by_identity_.end() ? std::nullopt : std::optional(found->second);
}

SegmentTrace trace_of(const RecordedSegment& segment, const FamilyCells& cells, CallForms& forms,
                      SegmentOperators& operators, trace::Names& names) {
  return Tracer(segment, cells, forms, operators, names).run();
}

}  // namespace janus::lazy
