// See boundary.h.
#include "execute/run/boundary.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "execute/library/copies.h"
#include "execute/values/container.h"

namespace janus::execute {

namespace {

/// What the caller did not count for itself, it keeps for the run as well.
Slot as_given(const Slot& slot) { return slot.is_alias() ? slot.alias() : slot; }

}  // namespace

void enter(const Code& code, Frame& frame, std::span<const Slot> inputs,
           std::span<const Slot> cells) {
  for (size_t i = 0; i < inputs.size(); ++i) frame.slots[code.body.parameters[i]] = inputs[i];
  for (size_t c = 0; c < cells.size(); ++c) {
    if (!cells[c].is_empty()) frame.slots[cell_slot(code, c)] = as_given(cells[c]);
  }
  for (const auto& [slot, cell] : code.cell_reads) frame.slots[slot] = as_given(cells[cell]);
}

int64_t writes_of(const Write& commit, const Frame& frame) {
  const int64_t more = commit.second ? frame.slots[*commit.second].i64() : 0;
  return commit.node->attributes.get_or<int64_t>("versions", 1) + more;
}

bool is_rebound(const Write& rebind, const Frame& frame) {
  return !rebind.second || frame.slots[*rebind.second].boolean();
}

Slot bound_to(const Write& rebind, const Frame& frame, const Slot& value) {
  if (!is_rebound(rebind, frame)) return Slot::none();
  return rebind.keeps ? Slot() : value;
}

namespace {

std::vector<int64_t> evaluated(const graph::Shape& strides, const Frame& frame) {
  std::vector<int64_t> values;
  for (const graph::Dim& stride : strides)
    values.push_back(stride.evaluate(frame.symbols.lookup()).value());
  return values;
}

}  // namespace

std::optional<std::vector<int64_t>> other_strides(const Code& code, size_t index,
                                                  const Layout& layout, const Frame& frame) {
  const auto known = code.result_strides.find(index);
  if (known == code.result_strides.end()) return std::nullopt;
  std::vector<int64_t> strides = evaluated(known->second, frame);
  return layout.has_strides(strides) ? std::nullopt : std::optional(std::move(strides));
}

std::vector<int64_t> rebound_strides(const Write& rebind, std::span<const int64_t> sizes,
                                     const Frame& frame) {
  const auto* wanted = rebind.node->attributes.find("strides");
  if (wanted == nullptr) return contiguous_strides(sizes);
  return evaluated(std::get<graph::Shape>(*wanted), frame);
}

namespace {

/// What must not be handed out as it is.
class Owners {
 public:
  Owners(const Code& code, const Library& library, const Frame& frame) {
    for (uint32_t slot : code.body.parameters) add(library, frame.slots[slot], outside_);
    for (size_t c = 0; c < code.cells.size(); ++c) {
      add(library, frame.slots[cell_slot(code, c)], outside_);
    }
    for (const Write& write : code.commits) {
      add(library, frame.slots[cell_slot(code, write.cell)], written_);
    }
  }

  bool writes() const { return !written_.empty(); }
  bool is_written(const void* storage) const { return contains(written_, storage); }
  bool is_outside(const void* storage) const { return contains(outside_, storage); }
  /// True the first time that `storage` is handed out.
  bool hand_out(const void* storage) {
    if (contains(handed_out_, storage)) return false;
    handed_out_.push_back(storage);
    return true;
  }

 private:
  static bool contains(const std::vector<const void*>& all, const void* one) {
    return std::find(all.begin(), all.end(), one) != all.end();
  }
  static void add(const Library& library, const Slot& slot, std::vector<const void*>& to) {
    if (slot.is_tensor()) to.push_back(library.storage(slot));
  }
  std::vector<const void*> outside_, written_, handed_out_;
};

/// What is handed out in place of a value: copies of tensors in memory that will be written, those
/// in frames and lists as well.
Slot given(Library& library, const Owners& owners, const Slot& value) {
  if (value.is_tensor() && owners.is_written(library.storage(value)))
    return cloned(library, value, false);
  if (value.kind() != Slot::Kind::container || !owners.writes()) return value;
  const bool is_frame = list_size(value) == 0;
  std::vector<Slot> items;
  if (is_frame) {
    const std::span<const Slot> own = frame_items(value);
    items.assign(own.begin(), own.end());
  } else {
    items = list_items(value);
  }
  for (Slot& item : items) item = given(library, owners, item);
  return is_frame ? make_frame(std::move(items)) : make_list(std::move(items));
}

/// Hands out what an ordinary run has computed.
class Finish {
 public:
  Finish(const Code& code, Library& library, Frame& frame)
      : code_(code), library_(library), frame_(frame), owners_(code, library, frame) {}

  void give_results(std::span<Slot> results) {
    std::vector<uint32_t> seen;
    for (size_t i = 0; i < results.size(); ++i) {
      const uint32_t slot = code_.body.results[i];
      const bool again = std::find(seen.begin(), seen.end(), slot) != seen.end();
      seen.push_back(slot);
      const Slot& value = frame_.slots[slot];
      results[i] = value.is_tensor() ? result(i, value, again) : given(library_, owners_, value);
    }
  }

  void give_rebound(std::span<Slot> rebound) {
    for (size_t i = 0; i < rebound.size(); ++i) {
      const Slot& value = frame_.slots[code_.rebinds[i].slot];
      rebound[i] = bound_to(code_.rebinds[i], frame_, value);
      if (!rebound[i].is_tensor()) continue;
      const void* storage = library_.storage(value);
      Layout layout = library_.layout(value);
      const auto strides = rebound_strides(code_.rebinds[i], layout.sizes, frame_);
      const bool own =
          owners_.hand_out(storage) && !owners_.is_outside(storage) && layout.has_strides(strides);
      if (own) continue;
      layout.strides = strides;
      rebound[i] = cloned(library_, value, layout);
    }
  }

  /// What may fail comes first: the copies of what is overwritten.
  void write_cells(std::span<const Slot> cells) {
    std::vector<Slot> contents;
    for (const Write& write : code_.commits)
      contents.push_back(new_contents(frame_.slots[write.slot], cells[write.cell]));
    for (size_t i = 0; i < code_.commits.size(); ++i) {
      Slot& cell = frame_.slots[cell_slot(code_, code_.commits[i].cell)];
      if (contents[i].tensor() != cell.tensor()) library_.copy(cell, contents[i]);
    }
    for (const Write& write : code_.commits)
      library_.bump_version(frame_.slots[cell_slot(code_, write.cell)], writes_of(write, frame_));
  }

 private:
  Slot result(size_t index, const Slot& value, bool again) {
    owners_.hand_out(library_.storage(value));
    Layout layout = library_.layout(value);
    if (auto strides = other_strides(code_, index, layout, frame_)) {
      layout.strides = std::move(*strides);
      return cloned(library_, value, layout);
    }
    return again ? cloned(library_, value, false) : given(library_, owners_, value);
  }

  /// The cell itself, if the value lies there already.
  Slot new_contents(const Slot& value, const Slot& cell) {
    const bool same = library_.data(value) == library_.data(cell) &&
                      library_.has_layout(value, library_.layout(cell));
    if (same) return cell;
    const bool is_overwritten = owners_.is_written(library_.storage(value));
    return is_overwritten ? cloned(library_, value, false) : value;
  }

  const Code& code_;
  Library& library_;
  Frame& frame_;
  Owners owners_;
};

}  // namespace

void finish(const Code& code, Library& library, Frame& frame, std::span<const Slot> cells,
            std::span<Slot> results, std::span<Slot> rebound) {
  Finish finish(code, library, frame);
  finish.give_results(results);
  finish.give_rebound(rebound);
  finish.write_cells(cells);
}

void set_apart(Library& library, std::span<Slot> results) {
  const auto is_list = [](const Slot& slot) {
    return slot.kind() == Slot::Kind::container && list_size(slot) > 0 &&
           last_item(slot).is_tensor();
  };
  if (std::none_of(results.begin(), results.end(), is_list)) return;
  std::unordered_set<const void*> given;
  for (const Slot& result : results)
    if (result.is_tensor()) given.insert(library.storage(result));
  for (Slot& result : results) {
    if (!is_list(result)) continue;
    std::vector<Slot> items = list_items(result);
    bool changed = false;
    for (Slot& item : items) {
      if (given.insert(library.storage(item)).second) continue;
      item = cloned(library, item);
      changed = true;
    }
    if (changed) result = make_list(std::move(items));
  }
}

}  // namespace janus::execute
