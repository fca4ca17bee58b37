// See rows.h.
#include "execute/frame/rows.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/policy.h"
#include "execute/values/container.h"

namespace janus::execute {

using graph::Type;

namespace {

Layout layout_of(const Type& type, const SymbolValues& symbols) {
  Layout layout;
  layout.dtype = type.dtype;
  for (const graph::Dim& dim : type.shape) {
    const auto size = dim.evaluate(symbols.lookup());
    TORCHJANUS_CHECK(size, "rows: a size of ", type, " is not known");
    layout.sizes.push_back(*size);
  }
  layout.strides = contiguous_strides(layout.sizes);
  return layout;
}

Layout row_of(const Layout& stacked) {
  Layout row;
  row.dtype = stacked.dtype;
  row.sizes.assign(stacked.sizes.begin() + 1, stacked.sizes.end());
  row.strides.assign(stacked.strides.begin() + 1, stacked.strides.end());
  return row;
}

/// Whether what element-wise operators make of the tensor lies in order.
bool gives_in_order(const Layout& layout) {
  const Layout* const operand = &layout;
  return elementwise_strides(layout.sizes, {&operand, 1}) == contiguous_strides(layout.sizes);
}

void put_number(const Slot& number, char* to) {
  switch (number.kind()) {
    case Slot::Kind::boolean:
      *reinterpret_cast<bool*>(to) = number.boolean();
      break;
    case Slot::Kind::i64:
      *reinterpret_cast<int64_t*>(to) = number.i64();
      break;
    case Slot::Kind::f64:
      *reinterpret_cast<double*>(to) = number.f64();
      break;
    default:
      TORCHJANUS_CHECK(false, "rows: an operand is neither a tensor nor a number");
  }
}

}  // namespace

void Rows::clear() {
  invocations_.clear();
  operands_.clear();
  batches_.clear();
  sums_.clear();
  given_.clear();
  uses_.clear();
  held_count_ = 0;
  own_tensors_.clear();
  first_waiting_ = 0;
}

int64_t Rows::bytes_held() const {
  size_t bytes = operands_.capacity() * sizeof(Slot) + invocations_.capacity() * sizeof(Invocation);
  for (const auto& of_kind : known_)
    for (const auto& [count, known] : of_kind) bytes += static_cast<size_t>(known.bytes_held());
  return static_cast<int64_t>(bytes);
}

Rows Rows::rest(std::vector<TensorPool>& tensors) {
  for (auto& of_kind : known_)
    for (auto& [count, known] : of_kind) known.take_tensors(tensors);
  Rows held = std::exchange(*this, Rows());
  known_.swap(held.known_);
  representatives_.swap(held.representatives_);
  return held;
}

// ---- putting off ------------------------------------------------------------------------------

bool Rows::put_off(const Instruction& instruction, Slot* slots) {
  Invocation invocation{.instruction = &representative(instruction),
                        .first_operand = static_cast<uint32_t>(operands_.size()),
                        .rank = instruction.rank};
  const size_t stacked = instruction.inputs.size() - instruction.sums;
  for (size_t i = 0; i < stacked; ++i) {
    const Slot& operand = slots[instruction.inputs[i]];
    if (!is_row(operand) || is_computed(operand)) continue;
    const Invocation& giver = invocations_[invocation_of(operand)];
    if (giver.instruction->sums == 0) {
      follow(invocation, giver);
    } else if (instruction.sums == 0 || instruction.rank <= giver.instruction->rank) {
      return false;
    }
  }
  const auto number = static_cast<uint32_t>(invocations_.size());
  for (size_t i = 0; i < instruction.inputs.size(); ++i) {
    Slot& operand = slots[instruction.inputs[i]];
    Slot own = instruction.moved_inputs[i] ? std::move(operand) : operand;
    if (i >= stacked) {
      const uint32_t sum = sum_operand(own);
      sums_[sum].last = number;
      own = Slot::of(int64_t{sum});
    }
    operands_.push_back(std::move(own));
  }
  invocations_.push_back(invocation);
  for (size_t i = 0; i < instruction.outputs.size(); ++i)
    slots[instruction.outputs[i]] = make_row(static_cast<int64_t>((uint64_t{number} << 16) | i));
  return true;
}

/// Nodes of one kind compute the same: one of them does it for all.
const Instruction& Rows::representative(const Instruction& instruction) {
  const size_t kind = instruction.operation;
  if (representatives_.size() <= kind) representatives_.resize(kind + 1);
  if (representatives_[kind] == nullptr) representatives_[kind] = &instruction;
  return *representatives_[kind];
}

/// It can only be computed behind `giver`.
void Rows::follow(Invocation& invocation, const Invocation& giver) const {
  if (giver.rank < invocation.rank) return;
  if (giver.rank > invocation.rank) invocation.level = 0;
  invocation.rank = giver.rank;
  invocation.level = std::max(invocation.level, giver.level + 1);
}

/// Goes on with the sum that the operand is the latest value of, or begins a new one.
uint32_t Rows::sum_operand(const Slot& operand) {
  if (is_row(operand) && invocations_[invocation_of(operand)].instruction->sums > 0)
    return sum_of(operand);
  sums_.push_back({.value = operand});
  return static_cast<uint32_t>(sums_.size() - 1);
}

uint32_t Rows::sum_of(const Slot& row) const {
  const uint32_t invocation = invocation_of(row);
  const Instruction& instruction = *invocations_[invocation].instruction;
  const size_t stacked = instruction.inputs.size() - instruction.sums;
  const auto sum = static_cast<uint32_t>(operands_of(invocation)[stacked + result_of(row)].i64());
  TORCHJANUS_CHECK(sums_[sum].last == invocation, "rows: an earlier value of a sum is needed");
  return sum;
}

/// What is waiting, as it is to be computed.
std::vector<Rows::Group> Rows::take_waiting() {
  std::vector<uint32_t> waiting;
  for (uint32_t i = first_waiting_; i < invocations_.size(); ++i) waiting.push_back(i);
  first_waiting_ = static_cast<uint32_t>(invocations_.size());
  // Sums last, by what they are added to; else by ranks and levels.
  const auto key = [&](uint32_t number) {
    const Invocation& invocation = invocations_[number];
    const size_t sums = invocation.instruction->sums;
    const uint64_t place = invocation.instruction->operation;
    return sums > 0 ? (uint64_t{1} << 63 | uint64_t{invocation.rank} << 40 | place)
                    : (uint64_t{invocation.rank} << 40 | uint64_t{invocation.level} << 16 | place);
  };
  const auto sums_before = [&](uint32_t a, uint32_t b) {
    const Instruction& instruction = *invocations_[a].instruction;
    for (size_t i = instruction.inputs.size() - instruction.sums; i < instruction.inputs.size();
         ++i)
      if (const int64_t x = operands_of(a)[i].i64(), y = operands_of(b)[i].i64(); x != y)
        return x < y;
    return false;
  };
  std::vector<std::pair<uint64_t, uint32_t>> order;
  order.reserve(waiting.size());
  for (const uint32_t number : waiting) order.emplace_back(key(number), number);
  std::sort(order.begin(), order.end(), [&](const auto& a, const auto& b) {
    if (a.first != b.first) return a.first < b.first;
    if (sums_before(a.second, b.second)) return true;
    return !sums_before(b.second, a.second) && a.second < b.second;
  });
  std::vector<Group> groups;
  for (size_t i = 0; i < order.size(); ++i) {
    const uint32_t number = order[i].second;
    const bool same =
        i > 0 && order[i].first == order[i - 1].first && !sums_before(order[i - 1].second, number);
    if (!same) {
      const Instruction* const instruction = invocations_[number].instruction;
      const auto place = static_cast<uint32_t>(given_.size());
      groups.push_back({.instruction = instruction, .members = {}, .number = place});
      given_.push_back({.first_use = uses_.size()});
      if (instruction->sums == 0) uses_.resize(uses_.size() + instruction->outputs.size());
    }
    invocations_[number].group = groups.back().number;
    groups.back().members.push_back(number);
  }
  return groups;
}

// ---- what nothing reads any more --------------------------------------------------------------

/// Null if the row is a sum.
Rows::Use* Rows::use_of(const Slot& row) {
  const Invocation& giver = invocations_[invocation_of(row)];
  if (giver.instruction->sums > 0) return nullptr;
  return &uses_[given_[giver.group].first_use + result_of(row)];
}

template <class See>
void Rows::see_operand_rows(const Group& group, See&& see) const {
  const size_t stacked = group.instruction->inputs.size() - group.instruction->sums;
  for (const uint32_t member : group.members)
    for (const Slot& operand : std::span(operands_of(member), stacked))
      if (is_row(operand)) see(operand);
}

/// Looking for rows in the run's slots and containers has to be little beside what is computed:
/// some nanoseconds for each that is found, and a microsecond for an invocation.
void Rows::expect_reads(const std::vector<Group>& groups, const RowHolders& holders) {
  size_t waiting = 0;
  for (const Group& group : groups) waiting += group.members.size();
  releases_ = policy::kMostHeldForOne * waiting >= held_count_;
  if (!releases_) return;
  for (const Group& group : groups)
    see_operand_rows(group, [&](const Slot& row) {
      if (Use* const use = use_of(row)) ++use->reads;
    });
  find_held(holders);
  // Of earlier groups something may have been read for the last time since.
  const size_t earlier = groups.empty() ? given_.size() : groups.front().number;
  for (size_t group = 0; group < earlier; ++group) {
    const size_t end = group + 1 < given_.size() ? given_[group + 1].first_use : uses_.size();
    for (size_t use = given_[group].first_use; use < end; ++use)
      release_unread(given_[group], use - given_[group].first_use);
  }
}

void Rows::find_held(const RowHolders& holders) {
  for (Use& use : uses_) use.is_held = false;
  held_count_ = 0;
  const auto hold = [&](const Slot& row) {
    ++held_count_;
    if (invocation_of(row) >= invocations_.size()) return;  // of an earlier run
    if (Use* const use = use_of(row)) use->is_held = true;
  };
  for (const std::span<const Slot> slots : holders) see_rows(slots, hold);
  for (const Sum& sum : sums_)
    if (is_row(sum.value)) hold(sum.value);
}

void Rows::note_reads(const Group& group) {
  if (!releases_) return;
  see_operand_rows(group, [&](const Slot& row) {
    Use* const use = use_of(row);
    if (use == nullptr || --use->reads > 0) return;
    release_unread(given_[invocations_[invocation_of(row)].group], result_of(row));
  });
  if (group.instruction->sums > 0) return;
  for (size_t i = 0; i < group.instruction->outputs.size(); ++i)
    release_unread(given_[group.number], i);
}

/// Numbers of sums are asked for later too.
void Rows::forget_operands(const Group& group) {
  const size_t stacked = group.instruction->inputs.size() - group.instruction->sums;
  for (const uint32_t member : group.members)
    for (Slot& operand : std::span(operands_).subspan(invocations_[member].first_operand, stacked))
      operand.clear();
}

void Rows::release_unread(const Given& given, size_t result) {
  const Use& use = uses_[given.first_use + result];
  if (use.reads > 0 || use.is_held) return;
  for (size_t i = given.first_batch; i < given.first_batch + given.batches; ++i) {
    batches_[i].results[result].clear();
    batches_[i].data[result] = nullptr;
  }
}

// ---- computing --------------------------------------------------------------------------------

void RowsOfNumber::forget_large_tensors() {
  for (Repeated& each : repeated) each.forget_large_tensors(policy::kLargestKeptRows);
  for (size_t i = 0; i < pools.size(); ++i)
    if (layouts[i].span_bytes() > policy::kLargestKeptRows) pools[i] = TensorPool();
}

int64_t RowsOfNumber::bytes_held() const {
  int64_t bytes = 0;
  for (const Repeated& each : repeated) bytes += each.bytes_held();
  for (size_t i = 0; i < pools.size(); ++i)
    bytes +=
        static_cast<int64_t>(pools[i].size()) * (layouts[i].span_bytes() + policy::kBytesOfTensor);
  return bytes;
}

void RowsOfNumber::take_tensors(std::vector<TensorPool>& to) {
  for (Repeated& each : repeated) each.take_tensors(to);
  for (TensorPool& pool : pools) to.push_back(std::exchange(pool, TensorPool()));
}

void RowsOfNumber::forget(const Slot& tensor) {
  for (Repeated& each : repeated) each.forget(tensor);
}

RowsOfNumber& Rows::of_number(const Group& group, const SymbolValues& symbols) {
  const Instruction& instruction = *group.instruction;
  const size_t count = group.members.size();
  known_.resize(std::max(known_.size(), instruction.operation + 1));
  const size_t large = group.is_rest ? policy::kLargestKnownRows + 1 : 0;
  RowsOfNumber& known =
      known_[instruction.operation][count <= policy::kLargestKnownRows ? count : large];
  const size_t stacked = instruction.inputs.size() - instruction.sums;
  const bool fits =
      known.layouts.size() == stacked && !known.repeated.empty() &&
      (stacked == 0 || known.layouts.front().sizes.front() == static_cast<int64_t>(count));
  if (fits) return known;
  known = {};
  const Sequence& inner = instruction.blocks.front();
  known.repeated.resize(inner.instructions.size() + 1);
  known.pools.resize(stacked);
  for (size_t i = 0; i < stacked; ++i) {
    const graph::Value& parameter = *instruction.node->blocks.front()->parameters[i];
    known.layouts.push_back(layout_of(parameter.type, symbols));
    known.rows.push_back(row_of(known.layouts.back()));
  }
  return known;
}

RowsOfNumber& Rows::enter(const Group& group, Library& library, Slot* slots,
                          SymbolValues& symbols) {
  const Instruction& instruction = *group.instruction;
  const Sequence& inner = instruction.blocks.front();
  symbols.set(instruction.node->attributes.get<std::string>("symbol"),
              static_cast<int64_t>(group.members.size()));
  RowsOfNumber& known = of_number(group, symbols);
  const size_t stacked = inner.parameters.size() - instruction.sums;
  for (size_t i = 0; i < stacked; ++i) slots[inner.parameters[i]] = stack(group, i, library, known);
  for (size_t i = stacked; i < inner.parameters.size(); ++i) {
    Slot& value = sums_[static_cast<size_t>(operands_of(group.members.front())[i].i64())].value;
    if (is_row(value)) value = tensor(value, library);
    slots[inner.parameters[i]] = std::move(value);
  }
  return known;
}

/// Whether a group is computed at once: there are enough invocations, and none is given a tensor
/// whose dimensions lie in another order, which copies would not keep.
bool Rows::are_stacked(const Group& group, Library& library, SymbolValues& symbols) {
  const Instruction& instruction = *group.instruction;
  if (group.members.size() < instruction.least_rows) return false;
  if (instruction.sums > 0) return true;
  symbols.set(instruction.node->attributes.get<std::string>("symbol"),
              static_cast<int64_t>(group.members.size()));
  const RowsOfNumber& known = of_number(group, symbols);
  for (size_t i = 0; i < known.rows.size(); ++i) {
    if (known.rows[i].sizes.size() < 2) continue;
    for (const uint32_t member : group.members)
      if (!lies_in_order(operands_of(member)[i], known.rows[i], library)) return false;
  }
  return true;
}

/// All, of what is not a sum. What is added to sums is stacked a piece at a time: it goes over all
/// levels, so that it would be as much as all of them have kept.
size_t Rows::rows_at_once(const Group& group, SymbolValues& symbols) {
  const Instruction& instruction = *group.instruction;
  const size_t count = group.members.size();
  if (instruction.sums == 0 || count <= policy::kLeastSummedRows) return count;
  symbols.set(instruction.node->attributes.get<std::string>("symbol"), static_cast<int64_t>(count));
  int64_t bytes = 1;  // there may be nothing in any of them
  for (size_t i = 0; i < instruction.inputs.size() - instruction.sums; ++i)
    bytes += layout_of(instruction.node->blocks.front()->parameters[i]->type, symbols).span_bytes();
  const size_t most = std::max(policy::kLeastSummedRows,
                               policy::kMostSummedBytes * count / static_cast<size_t>(bytes));
  const size_t pieces = (count + most - 1) / most;
  return (count + pieces - 1) / pieces;
}

Rows::Group Rows::part_of(const Group& group, size_t first, size_t count) {
  const auto begin = group.members.begin() + static_cast<ptrdiff_t>(first);
  const auto end = begin + static_cast<ptrdiff_t>(std::min(count, group.members.size() - first));
  return {.instruction = group.instruction,
          .members = {begin, end},
          .number = group.number,
          .is_rest = first > 0 && first + count > group.members.size()};
}

bool Rows::lies_in_order(const Slot& operand, const Layout& in_order,
                         const Library& library) const {
  if (!is_row(operand))
    return !operand.is_tensor() || library.has_layout(operand, in_order) ||
           gives_in_order(library.layout(operand));
  const Invocation& giver = invocations_[invocation_of(operand)];
  if (giver.instruction->sums > 0) return true;
  const Batch& batch = batches_[giver.batch];
  if (batch.data[result_of(operand)] != nullptr) return true;
  return gives_in_order(batch.is_single ? library.layout(batch.results[result_of(operand)])
                                        : batch.row[result_of(operand)]);
}

/// One operand of all invocations of a group, one below the other.
Slot Rows::stack(const Group& group, size_t operand, Library& library, RowsOfNumber& known) const {
  const Layout &layout = known.layouts[operand], &row = known.rows[operand];
  const int64_t bytes = row.element_count() * graph::byte_size(row.dtype);
  if (Slot part = part_of_batch(group, operand, library, layout, bytes); !part.is_empty())
    return part;
  Slot stacked = known.pools[operand].take(layout, library);
  char* to = static_cast<char*>(library.data(stacked));
  const auto copy = [&](const Slot& value, int64_t offset) {
    Slot place = library.share(stacked, offset, row);
    library.copy(place, value);
  };
  int64_t offset = 0;
  for (const uint32_t member : group.members) {
    const Slot& value = operands_of(member)[operand];
    if (is_row(value)) {
      const Invocation& giver = invocations_[invocation_of(value)];
      const char* from =
          giver.instruction->sums > 0 ? nullptr : batches_[giver.batch].data[result_of(value)];
      if (from == nullptr) {
        copy(tensor(value, library), offset);
      } else {
        std::memcpy(to + offset, from + giver.row * bytes, static_cast<size_t>(bytes));
      }
    } else if (!value.is_tensor()) {
      put_number(value, to + offset);
    } else if (library.has_layout(value, row)) {
      std::memcpy(to + offset, library.data(value), static_cast<size_t>(bytes));
    } else {
      copy(value, offset);
    }
    offset += bytes;
  }
  return stacked;
}

/// Without a copy, where the invocations take rows of one batch in order. Empty: they don't.
Slot Rows::part_of_batch(const Group& group, size_t operand, Library& library, const Layout& layout,
                         int64_t row_bytes) const {
  const Slot& first = operands_of(group.members.front())[operand];
  if (!is_row(first)) return {};
  const Invocation& begin = invocations_[invocation_of(first)];
  if (begin.instruction->sums > 0) return {};
  for (size_t i = 1; i < group.members.size(); ++i) {
    const Slot& value = operands_of(group.members[i])[operand];
    if (!is_row(value) || result_of(value) != result_of(first)) return {};
    const Invocation& giver = invocations_[invocation_of(value)];
    if (giver.instruction->sums > 0 || giver.batch != begin.batch || giver.row != begin.row + i)
      return {};
  }
  const Batch& batch = batches_[begin.batch];
  if (batch.is_single) return {};
  const Slot& whole = batch.results[result_of(first)];
  if (begin.row == 0 && batch.count == group.members.size()) return whole;
  return library.share(whole, begin.row * row_bytes, layout);
}

void Rows::leave(const Group& group, RowsOfNumber& known, Library& library, Slot* slots) {
  const Instruction& instruction = *group.instruction;
  const Sequence& inner = instruction.blocks.front();
  const size_t stacked = inner.parameters.size() - instruction.sums;
  if (instruction.sums > 0) {
    const Slot* operands = operands_of(group.members.front());
    for (size_t i = 0; i < inner.results.size(); ++i) {
      known.forget(slots[inner.results[i]]);
      sums_[static_cast<size_t>(operands[stacked + i].i64())].value =
          std::move(slots[inner.results[i]]);
    }
  } else {
    Batch batch;
    batch.count = group.members.size();
    for (const uint32_t result : inner.results) {
      Slot& value = batch.results.emplace_back(slots[result]);
      Layout layout = library.layout(value);
      if (!layout.is_contiguous() && gives_in_order(row_of(layout))) {
        layout.strides = contiguous_strides(layout.sizes);
        Slot copy = library.allocate(layout);
        library.copy(copy, value);
        value = std::move(copy);
      }
      batch.row.push_back(row_of(layout));
      batch.strides.push_back(layout.strides.front());
      batch.data.push_back(layout.is_contiguous() ? static_cast<const char*>(library.data(value))
                                                  : nullptr);
    }
    for (uint32_t i = 0; i < group.members.size(); ++i) {
      invocations_[group.members[i]].batch = static_cast<uint32_t>(batches_.size());
      invocations_[group.members[i]].row = i;
    }
    batches_.push_back(std::move(batch));
  }
  for (const uint32_t slot : inner.parameters) slots[slot].clear();
  for (const uint32_t slot : inner.results) slots[slot].clear();
}

void Rows::enter_single(const Invocation& invocation, Library& library, Slot* slots) {
  const Instruction& instruction = *invocation.instruction;
  const Sequence& single = instruction.blocks[1];
  const size_t stacked = single.parameters.size() - instruction.sums;
  Slot* const operands = operands_.data() + invocation.first_operand;
  for (size_t i = 0; i < single.parameters.size(); ++i) {
    if (!single.used_parameters[i]) continue;
    Slot& value = i < stacked ? operands[i] : sums_[static_cast<size_t>(operands[i].i64())].value;
    slots[single.parameters[i]] = is_row(value) ? tensor(value, library) : std::move(value);
  }
}

void Rows::leave_single(Invocation& invocation, Library& library, Slot* slots) {
  const Instruction& instruction = *invocation.instruction;
  const Sequence& single = instruction.blocks[1];
  const size_t stacked = single.parameters.size() - instruction.sums;
  const Slot* const operands = operands_.data() + invocation.first_operand;
  Batch batch{.is_single = true, .count = 1};
  for (size_t i = 0; i < single.results.size(); ++i) {
    Slot& result = slots[single.results[i]];
    Slot value = single.own_results[i] ? std::move(result) : result;
    if (instruction.sums > 0) {
      sums_[static_cast<size_t>(operands[stacked + i].i64())].value = std::move(value);
      continue;
    }
    batch.data.push_back(library.layout(value).is_contiguous()
                             ? static_cast<const char*>(library.data(value))
                             : nullptr);
    batch.results.push_back(std::move(value));
  }
  invocation.batch = static_cast<uint32_t>(batches_.size());
  if (instruction.sums == 0) batches_.push_back(std::move(batch));
}

Slot Rows::tensor(const Slot& row, Library& library) const {
  const Invocation& giver = invocations_[invocation_of(row)];
  if (giver.instruction->sums > 0) return sums_[sum_of(row)].value;
  const Batch& batch = batches_[giver.batch];
  if (batch.is_single) return batch.results[result_of(row)];
  const Layout& layout = batch.row[result_of(row)];
  return library.share(batch.results[result_of(row)],
                       giver.row * batch.strides[result_of(row)] * graph::byte_size(layout.dtype),
                       layout);
}

Slot Rows::take_tensor(const Slot& row, Library& library) {
  const Invocation& giver = invocations_[invocation_of(row)];
  if (giver.instruction->sums == 0) return tensor(row, library);
  Slot sum = std::move(sums_[sum_of(row)].value);
  TORCHJANUS_CHECK(!sum.is_empty(), "rows: a sum is asked for twice");
  return sum;
}

Slot Rows::own_tensor(const Slot& row, Library& library) {
  Slot& own = own_tensors_[row_number(row)];
  if (!own.is_empty()) return own;
  const Slot shared = tensor(row, library);
  Layout layout = library.layout(shared);
  if (!layout.is_dense()) layout.strides = contiguous_strides(layout.sizes);
  own = library.allocate(layout);
  library.copy(own, shared);
  return own;
}

}  // namespace janus::execute
