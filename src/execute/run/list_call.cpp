// See list_call.h.
#include "execute/run/list_call.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "execute/library/copies.h"
#include "execute/values/container.h"
#include "graph/op.h"
#include "ops/list.h"

namespace janus::execute {

using graph::DType;
using graph::Node;
using graph::Type;

Slot zero(const Type& type, Library& library, const SymbolValues& symbols) {
  if (type.is_none()) return Slot::none();
  if (!type.is_tensor()) return empty_list();
  std::vector<int64_t> sizes;
  for (const graph::Dim& dim : type.shape) {
    const auto size = dim.evaluate(symbols.lookup());
    TORCHJANUS_CHECK(size, "zeros: dimension ", dim, " is not known");
    sizes.push_back(*size);
  }
  const Layout layout = contiguous_layout(type.dtype, std::move(sizes));
  Slot tensor = library.allocate(layout);
  if (layout.span_bytes() > 0)
    std::memset(library.data(tensor), 0, static_cast<size_t>(layout.span_bytes()));
  return tensor;
}

Slot kept(const Slot& value, Library& library, const Frame& frame) {
  const bool borrowed = value.is_tensor() && !frame.borrowed.empty() &&
                        frame.borrowed.contains(library.storage(value));
  return borrowed ? cloned(library, value) : value;
}

namespace {

/// The index of an element as Python counts; nothing if there is none.
std::optional<int64_t> index_of(int64_t position, int64_t size) {
  if (position < 0) position += size;
  return position >= 0 && position < size ? std::optional(position) : std::nullopt;
}

class Access {
 public:
  Access(const Instruction& instruction, Library& library, Frame& frame)
      : node_(*instruction.node),
        library_(library),
        frame_(frame),
        operands_{frame.slots.data(), instruction.inputs, instruction.outputs} {}

  bool run() {
    if (node_.op == &op::list_item) return item();
    if (node_.op == &op::list_only) return only();
    if (node_.op == &op::list_stack) return stack();
    if (node_.op == &op::list_pick) return pick();
    if (node_.op == &op::list_order) return order();
    if (node_.op == &op::list_find) return find();
    if (node_.op == &op::list_reverse)
      reverse();
    else if (node_.op == &op::list_resize)
      resize();
    else if (node_.op == &op::list_sum)
      out() = sum(in(0), in(1));
    else if (node_.op == &op::list_slice)
      cut();
    else if (node_.op == &op::list_join)
      join();
    else if (node_.op == &op::list_find_object)
      find_object();
    else if (node_.op == &op::list_covers)
      covers();
    else
      unstack();
    return true;
  }

 private:
  const Slot& in(size_t index) const { return operands_.in(index); }
  Slot& out() const { return operands_.out(0); }
  const Type& element_type() const { return node_.output()->type.elements.front(); }
  Slot zero_element() const { return zero(element_type(), library_, frame_.symbols); }

  bool item() {
    const auto index = index_of(in(1).i64(), list_size(in(0)));
    if (!index) return false;
    Slot list = in(0);
    for (int64_t behind = list_size(list) - 1 - *index; behind > 0; --behind)
      list = without_last(list);
    out() = last_item(list);
    return true;
  }

  bool only() {
    const auto index = index_of(in(1).i64(), in(2).i64());
    if (!index) return false;
    // What is missing at the beginning is zero.
    Slot list = push(empty_list(), kept(in(0), library_, frame_));
    for (int64_t behind = in(2).i64() - 1 - *index; behind > 0; --behind)
      list = push(list, zero_element());
    out() = std::move(list);
    return true;
  }

  void reverse() {
    std::vector<Slot> items = list_items(in(0));
    std::reverse(items.begin(), items.end());
    out() = make_list(std::move(items));
  }

  void resize() {
    const auto size = static_cast<size_t>(std::max<int64_t>(in(1).i64(), 0));
    std::vector<Slot> items = list_items(in(0));
    if (items.size() == size) {
      out() = Slot(in(0));
      return;
    }
    if (items.size() > size) items.erase(items.begin(), items.end() - static_cast<ptrdiff_t>(size));
    std::vector<Slot> whole;
    while (whole.size() + items.size() < size) whole.push_back(zero_element());
    std::move(items.begin(), items.end(), std::back_inserter(whole));
    out() = make_list(std::move(whole));
  }

  Slot sum(const Slot& one, const Slot& other) {
    if (one.is_tensor()) return library_.sum(one, other);
    if (one.kind() != Slot::Kind::container) return one;
    const auto items = frame_items(one), others = frame_items(other);
    if (items.empty() && others.empty()) return sum_of_lists(one, other);
    if (items.empty() || others.empty()) return items.empty() ? other : one;
    std::vector<Slot> sums;
    for (size_t i = 0; i < items.size(); ++i) sums.push_back(sum(items[i], others[i]));
    return make_frame(std::move(sums));
  }

  Slot sum_of_lists(const Slot& one, const Slot& other) {
    std::vector<Slot> items = list_items(one), others = list_items(other);
    if (items.size() < others.size()) std::swap(items, others);
    const size_t first = items.size() - others.size();
    for (size_t i = 0; i < others.size(); ++i) items[first + i] = sum(items[first + i], others[i]);
    return make_list(std::move(items));
  }

  void cut() {
    const int64_t size = list_size(in(0));
    const auto clamped = [&](int64_t position) {
      return std::clamp<int64_t>(position < 0 ? position + size : position, 0, size);
    };
    const int64_t first = clamped(in(1).i64()), last = clamped(in(2).i64());
    // What is cut off at the end is only left out.
    Slot list = in(0);
    for (int64_t i = size; i > std::max(first, last); --i) list = without_last(list);
    if (first > 0) {
      std::vector<Slot> items = list_items(std::move(list));
      items.erase(items.begin(), items.begin() + first);
      list = make_list(std::move(items));
    }
    out() = std::move(list);
  }

  void join() {
    Slot list = in(0);
    for (Slot& item : list_items(in(1))) list = push(list, std::move(item));
    out() = std::move(list);
  }

  bool pick() {
    const std::vector<Slot> items = list_items(in(0));
    Slot list = empty_list();
    for (const Slot& position : list_items(in(1))) {
      const auto index = index_of(position.i64(), static_cast<int64_t>(items.size()));
      if (!index) return false;
      list = push(list, Slot(items[static_cast<size_t>(*index)]));
    }
    out() = std::move(list);
    return true;
  }

  bool order() {
    const std::vector<Slot> items = list_items(in(0));
    if (std::ranges::any_of(items, is_nan)) return false;
    std::vector<int64_t> positions(items.size());
    std::iota(positions.begin(), positions.end(), int64_t{0});
    const bool descends = in(1).boolean();
    const auto comes_first = [&](int64_t a, int64_t b) {
      const Slot &first = items[static_cast<size_t>(a)], &second = items[static_cast<size_t>(b)];
      return descends ? is_less(second, first) : is_less(first, second);
    };
    std::ranges::sort(positions, [&](int64_t a, int64_t b) {
      return comes_first(a, b) || (!comes_first(b, a) && a < b);
    });
    Slot list = empty_list();
    for (const int64_t position : positions) list = push(list, Slot::of(position));
    out() = std::move(list);
    return true;
  }

  bool find() {
    if (is_nan(in(1))) return false;
    const std::vector<Slot> items = list_items(in(0));
    const auto equal = [&](const Slot& item) {
      return !is_nan(item) && !is_less(item, in(1)) && !is_less(in(1), item);
    };
    const auto place = std::ranges::find_if(items, equal);
    out() = Slot::of(place == items.end() ? int64_t{-1} : int64_t{place - items.begin()});
    return true;
  }

  void find_object() {
    const void* object = in(1).object();
    Slot list = in(0);
    int64_t position = -1;
    for (; list_size(list) > 0; list = without_last(list), --position)
      if (last_item(list).object() == object) break;
    out() = Slot::of(list_size(list) > 0 ? position : int64_t{0});
  }

  void covers() {
    std::vector<bool> found(static_cast<size_t>(std::max<int64_t>(in(1).i64(), 0)));
    for (Slot list = in(0); list_size(list) > 0; list = without_last(list)) {
      const int64_t number = last_item(list).i64();
      if (number >= 0 && number < in(1).i64()) found[static_cast<size_t>(number)] = true;
    }
    out() = Slot::of(std::ranges::find(found, false) == found.end());
  }

  static bool is_nan(const Slot& number) {
    return number.kind() == Slot::Kind::f64 && std::isnan(number.f64());
  }

  /// Of numbers of one kind.
  static bool is_less(const Slot& a, const Slot& b) {
    return a.kind() == Slot::Kind::f64 ? a.f64() < b.f64() : integer(a) < integer(b);
  }

  /// The part of `whole` that is its slice `index` along `dim`.
  Slot slice(const Slot& whole, const Layout& layout, size_t dim, int64_t index) {
    Layout part = layout;
    part.sizes.erase(part.sizes.begin() + static_cast<ptrdiff_t>(dim));
    part.strides.erase(part.strides.begin() + static_cast<ptrdiff_t>(dim));
    return library_.share(whole, index * layout.strides[dim] * graph::byte_size(layout.dtype),
                          part);
  }

  bool stack() {
    const auto size = size_of_result();
    const std::vector<Slot> items = list_items(in(0));
    if (static_cast<int64_t>(items.size()) != size || items.empty()) return false;
    if (!items.front().is_tensor()) {
      stack_numbers(items);
      return true;
    }
    const auto dim = static_cast<size_t>(node_.attributes.get<int64_t>("dim"));
    Layout layout = library_.layout(items.front());
    layout.sizes.insert(layout.sizes.begin() + static_cast<ptrdiff_t>(dim), size);
    layout.strides = contiguous_strides(layout.sizes);
    Slot whole = library_.allocate(layout);
    for (size_t i = 0; i < items.size(); ++i) {
      Slot part = slice(whole, layout, dim, static_cast<int64_t>(i));
      library_.copy(part, items[i]);
    }
    out() = std::move(whole);
    return true;
  }

  int64_t size_of_result() const {
    const graph::AttributeValue& size = *node_.attributes.find("size");
    if (const auto* number = std::get_if<int64_t>(&size)) return *number;
    const auto value = std::get<graph::Dim>(size).evaluate(frame_.symbols.lookup());
    TORCHJANUS_CHECK(value, "list_stack: dimension ", size, " is not known");
    return *value;
  }

  static double real(const Slot& number) {
    if (number.kind() == Slot::Kind::f64) return number.f64();
    return number.kind() == Slot::Kind::i64 ? static_cast<double>(number.i64()) : number.boolean();
  }

  static int64_t integer(const Slot& number) {
    if (number.kind() == Slot::Kind::f64) return static_cast<int64_t>(number.f64());
    return number.kind() == Slot::Kind::i64 ? number.i64() : number.boolean();
  }

  void stack_numbers(const std::vector<Slot>& items) {
    const DType dtype = node_.output()->type.dtype;
    const auto size = static_cast<int64_t>(items.size());
    Slot whole = library_.allocate(contiguous_layout(dtype, {size}));
    auto* data = static_cast<char*>(library_.data(whole));
    for (const Slot& item : items) {
      const auto put = [&](auto element) {
        std::memcpy(data, &element, sizeof element);
        data += sizeof element;
      };
      if (dtype == DType::f32)
        put(static_cast<float>(real(item)));
      else if (dtype == DType::f64)
        put(real(item));
      else if (dtype == DType::i64)
        put(integer(item));
      else
        put(real(item) != 0);
    }
    out() = std::move(whole);
  }

  void unstack() {
    const auto dim = static_cast<size_t>(node_.attributes.get<int64_t>("dim"));
    const Slot whole = kept(in(0), library_, frame_);
    const Layout layout = library_.layout(whole);
    Slot list = empty_list();
    for (int64_t i = 0; i < layout.sizes[dim]; ++i) list = push(list, slice(whole, layout, dim, i));
    out() = std::move(list);
  }

  const Node& node_;
  Library& library_;
  Frame& frame_;
  const Operands operands_;
};

}  // namespace

bool run_list_access(const Instruction& instruction, Library& library, Frame& frame) {
  return Access(instruction, library, frame).run();
}

}  // namespace janus::execute
