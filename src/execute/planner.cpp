// Makes a plan from what the first run learned: who shares memory with whom, how long each piece of
// memory is needed, what may be written in place.
#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "execute/arena.h"
#include "execute/beside.h"
#include "execute/certainty.h"
#include "execute/ordinary_run.h"
#include "execute/plan.h"
#include "execute/sides.h"
#include "graph/op.h"

namespace janus::execute {

namespace {

/// How the memory of one root comes to be.
enum class Place : uint8_t {
  outside,  ///< input or cell: where it is differs from run to run
  fresh,    ///< made anew at each run
  arena,    ///< in the arena, always at the same address
  cell      ///< written into a cell's memory
};

/// All slots that lie in one piece of memory.
struct Group {
  Place place = Place::fresh;
  size_t defined = SIZE_MAX;  ///< instruction that makes the memory: the first, of sides of an `if`
  size_t last_use = 0;        ///< instruction that uses it last; instruction count: the end
  bool escapes = false;       ///< a result or rebound value lies in it
  bool is_cell = false;
  int64_t bytes = 0;  ///< from the root's first element to the end of the furthest slot
  size_t buffer = SIZE_MAX;
  uint32_t cell = 0;  ///< Place::cell: slot of the cell
};

}  // namespace

class Planner {
 public:
  Planner(Plan& plan, Library& library, Frame& frame)
      : plan_(plan), code_(plan.code_), library_(library), frame_(frame) {}

  void make(const FindArena& find_arena) {
    plan_.planned_ = choose_layouts(code_, frame_);
    compute_numbers_first(plan_.planned_, library_, frame_);
    open_branches(code_, plan_.planned_, frame_, library_);
    beside_until_ = find_groups_beside(plan_.planned_, frame_);
    end_ = instructions().size();
    sides_ = find_sides(plan_.planned_);
    find_groups();
    choose_places();
    find_certain_part();
    choose_in_place_writes();
    choose_gifts();
    choose_buffers();
    make_arena(find_arena);
    emit();
    plan_.forget_other_instructions();
    frame_.slots.shrink_to_fit();
    for (uint32_t slot : permanent_) frame_.borrowed.insert(library_.storage(frame_.slots[slot]));
  }

 private:
  const std::vector<Instruction>& instructions() const { return plan_.planned_.instructions; }
  const Learned& learned(uint32_t slot) const { return frame_.learned[slot]; }
  bool is_tensor(uint32_t slot) const { return learned(slot).origin != Learned::Origin::nothing; }
  Group& group(uint32_t slot) { return groups_.at(learned(slot).root); }

  /// The layouts of an instruction's operands; null for numbers.
  std::vector<const Layout*> input_layouts(const Instruction& instruction) const {
    std::vector<const Layout*> layouts;
    for (uint32_t slot : instruction.inputs) {
      layouts.push_back(is_tensor(slot) ? &learned(slot).layout : nullptr);
    }
    return layouts;
  }

  // --- who shares memory with whom, and for how long

  void find_groups() {
    for (uint32_t slot = 0; slot < frame_.learned.end_slot(); ++slot) {
      if (!is_tensor(slot)) continue;
      Group& root = groups_[learned(slot).root];
      root.bytes =
          std::max(root.bytes, learned(slot).byte_offset + learned(slot).layout.span_bytes());
      if (learned(slot).origin != Learned::Origin::computed) root.place = Place::outside;
      root.is_cell |= learned(slot).origin == Learned::Origin::cell;
    }
    for (size_t i = 0; i < end_; ++i) {
      for (uint32_t slot : instructions()[i].outputs) {
        if (!is_tensor(slot)) continue;
        if (learned(slot).root == slot) {
          const size_t position = first_beside(i);
          group(slot).defined = std::min(group(slot).defined, position);
          definitions_[slot].push_back(position);
        }
        use(slot, i);
      }
      for (uint32_t slot : instructions()[i].operands()) {
        use(slot, i);
        if (instructions()[i].keeps_operands) keep(slot);
      }
    }
    for (uint32_t slot : code_.body.results) escape(slot);
    for (const Write& write : code_.rebinds) escape(write.slot);
    for (const Write& write : code_.commits) use(write.slot, end_);
  }

  /// The first of the operations that this one runs beside; itself if it runs alone.
  size_t first_beside(size_t position) const {
    while (position > 0 && beside_until_[position - 1] > position) --position;
    return position;
  }

  void use(uint32_t slot, size_t position) {
    if (!is_tensor(slot)) return;
    if (position < end_) position = beside_until_[position] - 1;  // they run at the same time
    group(slot).last_use = std::max(group(slot).last_use, position);
    uses_[slot].push_back(position);
  }

  void escape(uint32_t slot) {
    if (!is_tensor(slot)) return;
    use(slot, end_);
    group(slot).escapes = true;
  }

  /// For as long as a frame lives, which may be longer than the run: neither in memory of the
  /// plan, nor by a tensor of the plan.
  void keep(uint32_t slot) {
    if (!is_tensor(slot)) return;
    group(slot).escapes = true;
    leaves_.insert(slot);
  }

  // --- where each piece of memory comes from

  /// Whether all of an operator's results lie in its operands' memory.
  bool is_view(const Instruction& instruction) const {
    if (instruction.outputs.empty() || instruction.action == Action::relayout) return false;
    return std::all_of(instruction.outputs.begin(), instruction.outputs.end(), [&](uint32_t slot) {
      return is_tensor(slot) && is_foreign(instruction, learned(slot).root);
    });
  }

  /// Whether a result lies in the memory of something that the instruction did not make.
  static bool is_foreign(const Instruction& instruction, uint32_t root) {
    return std::find(instruction.outputs.begin(), instruction.outputs.end(), root) ==
           instruction.outputs.end();
  }

  /// How the results of an operator come to their memory.
  enum class Making : uint8_t { into, placed, fresh };

  Making making(const Instruction& instruction) const {
    if (instruction.outputs.empty() || !makes_own_results(instruction)) return Making::fresh;
    if (frame_.operations[instruction.operation]->can_run_into()) return Making::into;
    const bool some =
        std::any_of(instruction.outputs.begin(), instruction.outputs.end(), [&](uint32_t slot) {
          return is_tensor(slot) && (!groups_.at(slot).escapes || replacing_.contains(slot));
        });
    return some && !is_foreign_code(instruction) ? Making::placed : Making::fresh;
  }

  /// Whether each result is a tensor with memory of its own, without gaps (or none).
  bool makes_own_results(const Instruction& instruction) const {
    for (size_t i = 0; i < instruction.outputs.size(); ++i) {
      const uint32_t slot = instruction.outputs[i];
      if (instruction.node->outputs[i]->type.is_none()) continue;
      if (!is_tensor(slot) || learned(slot).root != slot || !learned(slot).layout.is_dense()) {
        return false;
      }
    }
    return true;
  }

  /// Operators that are not torch's own might keep what they give.
  static bool is_foreign_code(const Instruction& instruction) {
    const auto* name = instruction.node->attributes.find("operator");
    const auto* text = name == nullptr ? nullptr : std::get_if<std::string>(name);
    return text != nullptr && text->find("::") != std::string::npos && !text->starts_with("aten::");
  }

  void choose_places() {
    for (const Instruction& instruction : instructions()) {
      const bool kernel = instruction.action == Action::kernel;
      if (instruction.action == Action::operation && !is_view(instruction)) {
        for (uint32_t slot : instruction.outputs) {
          if (is_tensor(slot) && is_foreign(instruction, learned(slot).root)) mixed_.insert(slot);
        }
      }
      const bool planned =
          instruction.action == Action::operation && making(instruction) != Making::fresh;
      const bool copied =
          instruction.action == Action::relayout || instruction.action == Action::give;
      if (!kernel && !planned && !copied) continue;
      for (uint32_t slot : instruction.outputs) {
        if (is_tensor(slot) && !group(slot).escapes) group(slot).place = Place::arena;
      }
    }
  }

  // --- from where on nothing can fail

  void find_certain_part() {
    certain_ = plan_.planned_.tail;
    if (code_.commits.empty() && code_.rebinds.empty()) return;  // nothing to hurry for
    while (certain_ > 0 && (is_certain(certain_ - 1) || tells_beforehand(certain_ - 1))) --certain_;
    // Operations that run beside each other all start at the place of the first.
    if (certain_ > 0) certain_ = std::max(certain_, beside_until_[certain_ - 1]);
    for (uint32_t slot : code_.body.results) copy_before(slot);
    for (const Write& write : code_.rebinds) copy_before(write.slot);
    for (const Write& write : code_.commits) copy_before(write.slot);
    for (size_t i = plan_.planned_.tail; i-- > certain_;)
      if (!is_certain(i)) make_before(i);
    // Not in the middle of a side, nor between two.
    for (size_t i = 0; i < certain_; ++i) {
      const Instruction& instruction = instructions()[i];
      if (instruction.action == Action::skip)
        certain_ = std::max(certain_, i + 1 + instruction.rest_size);
    }
  }

  bool is_certain(size_t position) const {
    const Instruction& instruction = instructions()[position];
    return execute::is_certain(instruction, library_, frame_) &&
           (instruction.action != Action::operation || is_view(instruction) ||
            makes_own_results(instruction));
  }

  /// Whether the operator, by what is there before it, tells whether it fails. On a side it may not
  /// be called at all.
  bool tells_beforehand(size_t position) const {
    const Instruction& instruction = instructions()[position];
    return instruction.action == Action::operation && sides_[position].branch == 0 &&
           frame_.operations[instruction.operation] != nullptr &&
           !frame_.operations[instruction.operation]->looked_at().empty() &&
           makes_own_results(instruction);
  }

  /// What an operator is looked at by, its indices and the tensor that they lead into, must be
  /// there before the first write to a cell.
  void make_before(size_t position) {
    const Instruction& instruction = instructions()[position];
    make_before(instruction.inputs[0], position);
    for (const size_t input : frame_.operations[instruction.operation]->looked_at())
      make_before(instruction.inputs[input], position);
  }
  void make_before(uint32_t slot, size_t position) {
    for (size_t i = position; i-- > certain_;) {
      const std::vector<uint32_t>& outputs = instructions()[i].outputs;
      if (std::ranges::find(outputs, slot) != outputs.end()) certain_ = i + 1;
    }
  }

  /// What leaves the graph and lies in a cell's or an input's memory must be there before the first
  /// write to a cell.
  void copy_before(uint32_t slot) {
    if (!is_tensor(slot) || group(slot).place != Place::outside) return;
    for (size_t i = certain_; i < end_; ++i) {
      const std::vector<uint32_t>& outputs = instructions()[i].outputs;
      if (std::find(outputs.begin(), outputs.end(), slot) != outputs.end()) certain_ = i + 1;
    }
  }

  // --- what is written into cells

  void choose_in_place_writes() {
    std::map<uint32_t, int> commits_of;
    for (const Write& write : code_.commits) ++commits_of[write.slot];
    for (const Write& write : code_.commits) {
      if (commits_of[write.slot] == 1 && may_write_in_place(write)) {
        Group& written = group(write.slot);
        written.place = Place::cell;
        written.cell = cell_slot(code_, write.cell);
        in_place_.insert(write.slot);
      }
    }
  }

  bool may_write_in_place(const Write& write) {
    const uint32_t cell = cell_slot(code_, write.cell);
    if (!is_tensor(write.slot) || !is_tensor(cell)) return false;
    Group& value = group(write.slot);
    if (value.place != Place::arena || learned(write.slot).root != write.slot) return false;
    const Layout& layout = learned(cell).layout;
    if (learned(write.slot).layout != layout || !layout.is_dense()) return false;
    return std::ranges::all_of(definitions_[write.slot], [&](size_t writer) {
      return writer >= certain_ && may_write_at(writer, write.slot, cell);
    });
  }

  bool may_write_at(size_t writer, uint32_t output, uint32_t cell) {
    const Instruction& instruction = instructions()[writer];
    if (instruction.action == Action::give && is_same(instruction.inputs[0], cell)) return true;
    return (instruction.action == Action::give || instruction.action == Action::kernel ||
            changes_first_input(instruction)) &&
           old_contents_unused_after(writer, output, cell);
  }

  /// Whether it is an operator that may be given its first input's memory for its result.
  bool changes_first_input(const Instruction& instruction) const {
    return instruction.action == Action::operation && making(instruction) == Making::into &&
           frame_.operations[instruction.operation]->can_run_in_place();
  }

  /// Whether the operator reads that slot only as what it changes.
  bool is_changed_in_place(const Instruction& instruction, uint32_t slot) const {
    return changes_first_input(instruction) && instruction.inputs[0] == slot &&
           std::ranges::count(instruction.inputs, slot) == 1;
  }

  /// Whether the two are on different sides of one `if`.
  bool exclude_each_other(size_t one, size_t other) const {
    return one < end_ && other < end_ && sides_[one].branch != 0 &&
           sides_[one].branch == sides_[other].branch && sides_[one].side != sides_[other].side;
  }

  /// Whether no instruction after `writer` reads the cell's memory, and `writer` itself reads each
  /// element only where it then writes.
  bool old_contents_unused_after(size_t writer, uint32_t output, uint32_t cell) {
    for (const auto& [slot, positions] : uses_) {
      if (learned(slot).root != learned(cell).root) continue;
      for (size_t position : positions) {
        if (position < writer || exclude_each_other(position, writer)) continue;
        if (position > writer) return false;
        const Instruction& instruction = instructions()[writer];
        const bool same_walk =
            learned(slot).byte_offset == learned(cell).byte_offset &&
            learned(slot).layout == learned(cell).layout &&
            (instruction.action == Action::kernel ? has_axes_of(instruction, slot, output)
                                                  : is_changed_in_place(instruction, slot));
        if (!same_walk) return false;
      }
    }
    return true;
  }

  // --- the arena

  void choose_buffers() {
    for (size_t i = 0; i < end_; ++i) {
      const Instruction& instruction = instructions()[i];
      std::set<size_t> taken;  // buffers of the instruction's other results
      for (uint32_t slot : instruction.outputs) {
        if (!is_tensor(slot) || learned(slot).root != slot) continue;
        Group& made = group(slot);
        if (made.place != Place::arena || made.buffer != SIZE_MAX) continue;
        const size_t reused =
            instruction.action == Action::kernel || changes_first_input(instruction)
                ? reusable_buffer(i, slot)
                : SIZE_MAX;
        if (reused != SIZE_MAX && taken.insert(reused).second) {
          made.buffer = reused;
          buffers_[reused].last = std::max(buffers_[reused].last, made.last_use);
        } else {
          made.buffer = buffers_.size();
          buffers_.push_back({std::max<int64_t>(made.bytes, 1), made.defined, made.last_use});
        }
      }
    }
  }

  /// Whether a kernel reads that operand where it writes that result: two tensors of one layout may
  /// lie along different dimensions of the space, or one be read at other indices.
  static bool has_axes_of(const Instruction& instruction, uint32_t operand, uint32_t output) {
    const auto axes = instruction.kernel->axes();
    if (axes.empty()) return true;
    std::vector<uint32_t> tensors;
    for (size_t i = 0; i < instruction.inputs.size(); ++i)
      if (instruction.node->inputs[i]->type.is_tensor()) tensors.push_back(instruction.inputs[i]);
    tensors.insert(tensors.end(), instruction.outputs.begin(), instruction.outputs.end());
    const auto written = std::ranges::find(tensors, output) - tensors.begin();
    for (size_t t = 0; t < tensors.size(); ++t)
      if (tensors[t] == operand &&
          (instruction.kernel->map(t) != nullptr || axes[t] != axes[static_cast<size_t>(written)]))
        return false;
    return true;
  }

  /// The buffer of an operand of instruction `position`, a kernel or an operator in place, that
  /// nothing needs afterwards and that can hold its result `output`.
  size_t reusable_buffer(size_t position, uint32_t output) {
    const Instruction& instruction = instructions()[position];
    const bool is_kernel = instruction.action == Action::kernel;
    for (uint32_t slot : instruction.inputs) {
      if (!is_tensor(slot) || !(is_kernel || is_changed_in_place(instruction, slot))) continue;
      const Group& operand = group(slot);
      if (operand.place != Place::arena || buffers_[operand.buffer].last != position) continue;
      if (learned(slot).layout != learned(output).layout || learned(slot).byte_offset != 0 ||
          operand.bytes != group(output).bytes) {
        continue;
      }
      // Every operand in that buffer must walk over it in the same way.
      const bool alone =
          std::all_of(instruction.inputs.begin(), instruction.inputs.end(), [&](uint32_t other) {
            if (!is_tensor(other) || group(other).buffer != operand.buffer) return true;
            if (!is_kernel) return other == slot;
            return learned(other).layout == learned(slot).layout &&
                   learned(other).byte_offset == 0 && has_axes_of(instruction, other, output);
          });
      if (alone) return operand.buffer;
    }
    return SIZE_MAX;
  }

  void make_arena(const FindArena& find_arena) {
    plan_.arena_bytes_ = place_buffers(buffers_);
    plan_.arena_ = find_arena(plan_.arena_bytes_);
    for (uint32_t slot = 0; slot < frame_.learned.end_slot(); ++slot) {
      if (!is_tensor(slot)) continue;
      const Group& memory = group(slot);
      if (memory.place != Place::arena) continue;
      char* data = address(slot);
      frame_.slots[slot] = library_.over_memory(data, learned(slot).layout);
      permanent_.insert(slot);
    }
  }

  char* address(uint32_t slot) {
    return plan_.arena_ + buffers_[group(slot).buffer].offset + learned(slot).byte_offset;
  }

  // --- steps

  void step(Step::Kind kind, size_t index) {
    plan_.steps_.push_back({kind, static_cast<uint32_t>(index)});
  }

  void emit() {
    emit(0, certain_);
    emit_early_copies();
    for (size_t i = certain_; i < end_; ++i) {
      if (is_given_memory(instructions()[i])) emit_allocations(i);
    }
    for (size_t i = certain_; i < plan_.planned_.tail; ++i)
      if (!is_certain(i)) step(Step::Kind::look, i);
    plan_.first_write_ = plan_.steps_.size();
    emit(certain_, end_);
    emit_late_copies();
    for (const Plan::Transfer& transfer : committed_) emit_copy(transfer.to, transfer.from);
    for (uint32_t slot = 0; slot < frame_.slots.size(); ++slot) {
      if (!permanent_.contains(slot) && !is_constant(slot)) plan_.transient_.push_back(slot);
    }
  }

  bool is_constant(uint32_t slot) const {
    return std::any_of(code_.constants.begin(), code_.constants.end(),
                       [&](const Constant& constant) { return constant.slot == slot; }) ||
           std::any_of(code_.objects.begin(), code_.objects.end(),
                       [&](const auto& object) { return object.first == slot; });
  }

  void emit(size_t begin, size_t end) {
    for (size_t i = begin; i < end;) {
      if (instructions()[i].action == Action::kernel) {
        std::vector<Plan::Call> calls = calls_together(i, end);
        const size_t first = std::exchange(i, i + calls.size());
        if (calls.size() == 1)
          emit_kernel(first, std::move(calls.front()));
        else
          emit_batch(first, std::move(calls));
      } else {
        emit(i++);
      }
    }
  }

  void emit(size_t position) {
    const Instruction& instruction = instructions()[position];
    if (beside_until_[position] > position + 1 && first_beside(position) == position &&
        emit_beside(position))
      return;
    switch (instruction.action) {
      case Action::number:
        step(Step::Kind::number, position);
        break;
      case Action::dimension:
        TORCHJANUS_CHECK(false, "plan: a size that only the run knows");
      case Action::size:
        step(Step::Kind::size, position);
        break;
      case Action::item:
        step(Step::Kind::item, position);
        break;
      case Action::guard:
        step(Step::Kind::guard, position);
        break;
      case Action::kernel:
        TORCHJANUS_CHECK(false, "plan: kernels are emitted by themselves");
      case Action::operation:
        if (first_beside(position) == position) emit_operation(position);
        break;
      case Action::relayout:
        emit_own_allocations(position);
        emit_copy(instruction.outputs[0], instruction.inputs[0]);
        break;
      case Action::skip:
        emit_skip(position);
        break;
      case Action::give:
        if (!instruction.outputs.empty()) emit_give(position);
        break;
      case Action::container:
        step(Step::Kind::container, position);
        break;
      case Action::identity:
        step(Step::Kind::identity, position);
        break;
      case Action::heap:
      case Action::choose:
      case Action::rows:
      case Action::loop:
      case Action::call:
        step(Step::Kind::control, position);
    }
    end_instruction(position);
  }

  void end_instruction(size_t position) {
    emit_releases(position);
    while (!open_sides_.empty() && open_sides_.back().end == position) {
      Plan::Skip& skip = plan_.skips_[open_sides_.back().skip];
      skip.steps = plan_.steps_.size() - open_sides_.back().first_step;
      open_sides_.pop_back();
    }
  }

  void emit_skip(size_t position) {
    const Instruction& instruction = instructions()[position];
    step(Step::Kind::skip, plan_.skips_.size());
    open_sides_.push_back({.end = position + instruction.side_size,
                           .skip = plan_.skips_.size(),
                           .first_step = plan_.steps_.size()});
    plan_.skips_.push_back({instruction.inputs[0], instruction.wanted, 0});
  }

  void emit_give(size_t position) {
    const uint32_t from = instructions()[position].inputs[0];
    const uint32_t to = instructions()[position].outputs[0];
    if (!is_tensor(to)) {
      plan_.hands_.push_back({to, from});
      return step(Step::Kind::hand, plan_.hands_.size() - 1);
    }
    emit_own_allocations(position);
    emit_adoptions(position);
    const Group& given = group(to);
    if (given.place != Place::cell || !is_same(from, given.cell)) emit_copy(to, from);
  }

  void emit_operation(size_t position) {
    const Instruction& instruction = instructions()[position];
    if (is_view(instruction)) return emit_views(instruction);
    switch (making(instruction)) {
      case Making::into:
        emit_own_allocations(position);
        emit_adoptions(position);
        return step(Step::Kind::operation_into, position);
      case Making::placed:
        return emit_placed(position);
      case Making::fresh:
        return step(Step::Kind::operation_fresh, position);
    }
  }

  /// All of a group at once; false if they can't be called so.
  bool emit_beside(size_t first) {
    const size_t end = beside_until_[first];
    for (size_t i = first; i < end; ++i) {
      if (making(instructions()[i]) == Making::into) continue;
      for (size_t alone = first; alone < end; ++alone) beside_until_[alone] = alone + 1;
      return false;
    }
    for (size_t i = first; i < end; ++i) emit_own_allocations(i);
    plan_.besides_.push_back(
        {.first = static_cast<uint32_t>(first), .count = static_cast<uint32_t>(end - first)});
    step(Step::Kind::beside, plan_.besides_.size() - 1);
    return true;
  }

  void emit_placed(size_t position) {
    const Instruction& instruction = instructions()[position];
    Plan::Placed call;
    call.instruction = static_cast<uint32_t>(position);
    for (size_t i = 0; i < instruction.outputs.size(); ++i) {
      const uint32_t slot = instruction.outputs[i];
      call.made.push_back(new_slot());
      if (!is_tensor(slot)) continue;
      const bool replaces = replacing_.contains(slot);
      if (group(slot).place != Place::arena && !replaces) continue;
      const int64_t bytes = learned(slot).layout.span_bytes();
      const auto before =
          std::count_if(call.placements.begin(), call.placements.end(),
                        [&](const Placement& other) { return other.bytes == bytes; });
      if (replaces) call.moving.push_back(call.placements.size());
      call.placements.push_back({replaces ? nullptr : address(slot), bytes, before, i});
    }
    plan_.placed_.push_back(std::move(call));
    step(Step::Kind::operation_placed, plan_.placed_.size() - 1);
  }

  /// Views need no call: those of the arena are there already, others are moved to where their
  /// root is. What leaves the graph must be a tensor of its own.
  void emit_views(const Instruction& instruction) {
    for (uint32_t slot : instruction.outputs) {
      if (permanent_.contains(slot)) continue;
      plan_.views_.push_back({slot, learned(slot).root, learned(slot).byte_offset});
      if (leaves_.contains(slot)) {
        step(Step::Kind::share, plan_.views_.size() - 1);
      } else {
        frame_.slots[slot] = library_.over_memory(nullptr, learned(slot).layout);
        permanent_.insert(slot);
        step(Step::Kind::repoint, plan_.views_.size() - 1);
      }
    }
  }

  /// Whether its results are written into memory that it is given.
  bool is_given_memory(const Instruction& instruction) const {
    if (instruction.action != Action::operation)
      return instruction.action == Action::kernel || instruction.action == Action::relayout ||
             instruction.action == Action::give;
    return !is_view(instruction) && making(instruction) != Making::fresh;
  }

  /// Memory is asked for where that may fail: the certain part has it all when it begins.
  void emit_own_allocations(size_t position) {
    if (position < certain_) emit_allocations(position);
  }

  void emit_allocations(size_t position) {
    const Instruction& instruction = instructions()[position];
    const bool placed =
        instruction.action == Action::operation && making(instruction) == Making::placed;
    for (uint32_t slot : instruction.outputs) {
      if (!is_tensor(slot) || group(slot).place != Place::fresh) continue;
      const auto replaced = replacing_.find(slot);
      if (placed && replaced == replacing_.end()) continue;
      if (position >= certain_ && !allocated_.insert(slot).second) continue;
      if (replaced != replacing_.end())
        plan_.allocations_.push_back({slot, replaced->second, learned(slot).layout});
      else
        plan_.allocations_.push_back({slot, std::nullopt, learned(slot).layout});
      step(Step::Kind::allocate, plan_.allocations_.size() - 1);
    }
  }

  /// What is written in place is the cell's tensor.
  void emit_adoptions(size_t position) {
    for (uint32_t slot : instructions()[position].outputs) {
      if (group(slot).place != Place::cell) continue;
      plan_.adoptions_.push_back({slot, group(slot).cell});
      step(Step::Kind::adopt, plan_.adoptions_.size() - 1);
    }
  }

  void emit_kernel(size_t position, Plan::Call call) {
    emit_own_allocations(position);
    emit_adoptions(position);
    plan_.calls_.push_back(std::move(call));
    step(Step::Kind::kernel, plan_.calls_.size() - 1);
    end_instruction(position);
  }

  Plan::Call call_of(size_t position) {
    const Instruction& instruction = instructions()[position];
    std::vector<Layout> outputs;
    for (uint32_t slot : instruction.outputs) outputs.push_back(learned(slot).layout);
    Plan::Call call{KernelCall(instruction, input_layouts(instruction), outputs), {}};
    call.call.place();
    for (uint32_t k = 0; k < call.call.tensor_count(); ++k) {
      const uint32_t slot = call.call.slot(k);
      if (group(slot).place == Place::arena)
        call.call.set_data(k, address(slot));
      else
        call.patches.push_back({k, slot});
    }
    return call;
  }

  // --- kernels that do not need each other

  /// The kernel at `begin`, and as many of those behind it as may run in any order with it.
  std::vector<Plan::Call> calls_together(size_t begin, size_t end) {
    std::vector<Plan::Call> calls;
    std::vector<Stretch> read, written;
    for (size_t i = begin; i < end && instructions()[i].action == Action::kernel; ++i) {
      const bool is_first = i == begin;
      if (!is_first && (ends_side(i - 1) || needs_order(instructions()[i], read, written))) break;
      Plan::Call call = call_of(i);
      const bool can_be_joined = call.call.placed() != nullptr;
      if (is_first || can_be_joined) calls.push_back(std::move(call));
      if (!can_be_joined) break;
      for (uint32_t slot : instructions()[i].inputs)
        if (is_tensor(slot)) read.push_back(stretch(slot));
      for (uint32_t slot : instructions()[i].outputs) written.push_back(stretch(slot));
    }
    return calls;
  }

  bool ends_side(size_t position) const {
    return !open_sides_.empty() && open_sides_.back().end == position;
  }

  /// Memory that a slot's tensor lies in.
  struct Stretch {
    uint32_t root = 0;            ///< outside of the arena
    const char* begin = nullptr;  ///< in the arena
    const char* end = nullptr;

    bool overlaps(const Stretch& other) const {
      if (begin == nullptr || other.begin == nullptr)
        return begin == other.begin && root == other.root;
      return begin < other.end && other.begin < end;
    }
  };

  Stretch stretch(uint32_t slot) {
    const Group& memory = group(slot);
    if (memory.place == Place::cell) return {.root = learned(memory.cell).root};
    if (memory.place != Place::arena) return {.root = learned(slot).root};
    const char* begin = address(slot);
    return {.begin = begin, .end = begin + learned(slot).layout.span_bytes()};
  }

  /// Whether it reads what others write, or writes what they read or write.
  bool needs_order(const Instruction& kernel, const std::vector<Stretch>& read,
                   const std::vector<Stretch>& written) {
    const auto meets = [&](uint32_t slot, const std::vector<Stretch>& all) {
      const Stretch own = stretch(slot);
      return std::ranges::any_of(all, [&](const Stretch& other) { return own.overlaps(other); });
    };
    return std::ranges::any_of(
               kernel.inputs,
               [&](uint32_t slot) { return is_tensor(slot) && meets(slot, written); }) ||
           std::ranges::any_of(kernel.outputs, [&](uint32_t slot) {
             return meets(slot, read) || meets(slot, written);
           });
  }

  void emit_batch(size_t begin, std::vector<Plan::Call> calls) {
    std::vector<KernelCall> kernels;
    std::vector<Plan::Patch> patches;
    for (uint32_t k = 0; k < calls.size(); ++k) {
      emit_own_allocations(begin + k);
      emit_adoptions(begin + k);
      for (Plan::Patch patch : calls[k].patches) {
        patch.call = k;
        patches.push_back(patch);
      }
      kernels.push_back(std::move(calls[k].call));
    }
    plan_.batches_.push_back({KernelBatch(std::move(kernels)), std::move(patches)});
    step(Step::Kind::kernels, plan_.batches_.size() - 1);
    for (size_t k = 0; k < calls.size(); ++k) end_instruction(begin + k);
  }

  /// Memory of their own that operators made is given back after its last use.
  void emit_releases(size_t position) {
    for (uint32_t slot : instructions()[position].dead) {
      if (!is_tensor(slot)) step(Step::Kind::release, slot);
    }
    const auto release = [&](uint32_t slot) {
      if (!is_tensor(slot) || permanent_.contains(slot)) return;
      const Group& memory = group(slot);
      if (memory.place != Place::fresh || memory.last_use != position) return;
      if (!released_.insert(slot).second) return;
      step(Step::Kind::release, slot);
      // Other tensors over the same memory hold it too.
      for (const auto& [other, positions] : uses_) {
        if (other == slot || permanent_.contains(other)) continue;
        if (learned(other).root != learned(slot).root || !released_.insert(other).second) continue;
        step(Step::Kind::release, other);
      }
    };
    for (uint32_t slot : instructions()[position].operands()) release(slot);
    for (uint32_t slot : instructions()[position].outputs) release(slot);
  }

  // --- what leaves the graph

  struct Gift {
    uint32_t value = 0;
    uint32_t clone = 0;  ///< slot of its copy
    Layout layout;
    bool early = true;  ///< copied before the first write
  };

  /// Decides which results and rebound values are handed out as they are and which as copies.
  void choose_gifts() {
    std::set<uint32_t> written;
    for (const Write& write : code_.commits) {
      const uint32_t cell = cell_slot(code_, write.cell);
      if (is_tensor(cell)) written.insert(learned(cell).root);
    }
    std::set<uint32_t> given;
    std::set<uint32_t> given_roots;
    for (size_t i = 0; i < code_.body.results.size(); ++i) {
      const uint32_t slot = code_.body.results[i];
      if (is_tensor(slot))
        if (auto strides = other_strides(code_, i, learned(slot).layout, frame_)) {
          plan_.result_slots_.push_back(clone(slot, std::move(*strides)));
          continue;
        }
      const bool again = !given.insert(slot).second;
      const bool copied = is_tensor(slot) &&
                          (again || written.contains(learned(slot).root) || mixed_.contains(slot));
      plan_.result_slots_.push_back(copied ? clone(slot) : slot);
      if (!is_tensor(slot)) continue;
      if (!copied) leaves_.insert(slot);
      given_roots.insert(learned(slot).root);
    }
    for (const Write& write : code_.rebinds) {
      const uint32_t slot = write.slot;
      plan_.replaced_slots_.push_back(new_slot());
      if (!is_tensor(slot)) {
        plan_.rebound_slots_.push_back(slot);
        continue;
      }
      const Layout& layout = learned(slot).layout;
      const auto strides = rebound_strides(write, layout.sizes, frame_);
      const bool own = given_roots.insert(learned(slot).root).second &&
                       group(slot).place != Place::outside && !mixed_.contains(slot) &&
                       layout.has_strides(strides);
      plan_.rebound_slots_.push_back(own ? slot : clone(slot, strides));
      if (!own) continue;
      leaves_.insert(slot);
      if (may_replace(slot)) replacing_.emplace(slot, plan_.replaced_slots_.back());
    }
    for (const Write& write : code_.commits) {
      if (in_place_.contains(write.slot) || !is_tensor(write.slot)) continue;
      const uint32_t cell = cell_slot(code_, write.cell);
      if (is_same(write.slot, cell)) continue;
      const bool moved = written.contains(learned(write.slot).root);
      committed_.push_back({cell, moved ? clone(write.slot) : write.slot});
    }
  }

  /// Whether the value may be computed right into the tensor that it takes the place of.
  bool may_replace(uint32_t slot) const {
    if (learned(slot).root != slot) return false;
    const Group& value = groups_.at(slot);
    if (value.place != Place::fresh || value.defined < certain_) return false;
    return std::ranges::all_of(definitions_.at(slot), [&](size_t position) {
      const Instruction& made = instructions()[position];
      return made.action != Action::operation ||
             (makes_own_results(made) && !is_foreign_code(made));
    });
  }

  uint32_t new_slot() {
    frame_.slots.emplace_back();
    return static_cast<uint32_t>(frame_.slots.size() - 1);
  }

  bool is_same(uint32_t a, uint32_t b) const {
    return learned(a).root == learned(b).root && learned(a).byte_offset == learned(b).byte_offset &&
           learned(a).layout == learned(b).layout;
  }

  uint32_t clone(uint32_t slot) {
    const Layout& layout = learned(slot).layout;
    return clone(slot, layout.is_dense() ? layout.strides : contiguous_strides(layout.sizes));
  }

  uint32_t clone(uint32_t slot, std::vector<int64_t> strides) {
    Gift gift;
    gift.value = slot;
    gift.layout = learned(slot).layout;
    gift.layout.strides = std::move(strides);
    // A view may be made in the certain part although its memory is there before.
    gift.early = group(slot).place == Place::outside || uses_.at(slot).front() < certain_;
    gift.clone = new_slot();
    gifts_.push_back(gift);
    return gift.clone;
  }

  void emit_early_copies() {
    for (const Gift& gift : gifts_) {
      plan_.allocations_.push_back({gift.clone, std::nullopt, gift.layout});
      step(Step::Kind::allocate, plan_.allocations_.size() - 1);
      if (gift.early) emit_copy(gift.clone, gift.value);
    }
  }

  void emit_late_copies() {
    for (const Gift& gift : gifts_) {
      if (!gift.early) emit_copy(gift.clone, gift.value);
    }
  }

  void emit_copy(uint32_t to, uint32_t from) {
    plan_.copies_.push_back({to, from});
    step(Step::Kind::copy, plan_.copies_.size() - 1);
  }

  Plan& plan_;
  const Code& code_;
  Library& library_;
  Frame& frame_;
  size_t end_ = 0;
  size_t certain_ = 0;                            ///< from this instruction on nothing can fail
  std::map<uint32_t, Group> groups_;              // by root slot
  std::map<uint32_t, std::vector<size_t>> uses_;  // by slot: what makes it first
  std::vector<Buffer> buffers_;
  std::map<uint32_t, std::vector<size_t>> definitions_;  // by root slot: one, or one on each side
  std::vector<Standing> sides_;                          // by instruction
  struct OpenSide {
    size_t end = 0;  ///< its last instruction
    size_t skip = 0;
    size_t first_step = 0;
  };
  std::vector<OpenSide> open_sides_;        // while steps are emitted
  std::set<uint32_t> allocated_;            // in the certain part
  std::vector<size_t> beside_until_;        // by instruction: end of those that it runs beside
  std::set<uint32_t> in_place_;             // values written into their cell
  std::set<uint32_t> permanent_;            // slots whose tensors belong to the plan
  std::set<uint32_t> leaves_;               // slots handed out as they are
  std::map<uint32_t, uint32_t> replacing_;  // a value, and the slot of what it may replace
  std::set<uint32_t> released_;
  std::set<uint32_t> mixed_;  // results in an operand's memory of operators with other results too
  std::vector<Gift> gifts_;
  std::vector<Plan::Transfer> committed_;
};

Plan::Plan(const Code& code, Library& library, Frame& frame, const FindArena& find_arena)
    : code_(code) {
  Planner(*this, library, frame).make(find_arena);
}

}  // namespace janus::execute
