// Reference implementations of ops/container.cpp and ops/list_access.cpp: frames and lists.
#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "graph/element_code.h"
#include "ops/list.h"
#include "ops/reference_functions.h"

namespace janus::ops {

using namespace graph;

namespace {

using Items = std::vector<Datum>;

Items items(const ReferenceCall& call, size_t input = 0) {
  return std::get<SharedList>(call.inputs[input])->items;
}

int64_t integer(const ReferenceCall& call, size_t input) {
  return std::get<int64_t>(call.inputs[input]);
}

double number(const Datum& datum) {
  const TypedNumber typed = typed_number(datum);
  return typed.number.as_double(typed.dtype);
}

Datum shared(Items items) { return std::make_shared<const DatumList>(std::move(items)); }

/// The gradient of a value of this type on which nothing depends.
Datum zero(const ReferenceCall& call, const Type& type) {
  if (type.is_tensor()) return DenseTensor(type.dtype, call.run.sizes_of(type));
  return type.is_none() ? Datum(None{}) : shared({});
}

/// That many elements of the list that is the result.
Items zeros(const ReferenceCall& call, int64_t count) {
  const Type& type = call.node.output()->type.elements.front();
  return Items(static_cast<size_t>(std::max<int64_t>(count, 0)), zero(call, type));
}

bool is_read_as_zeros(const ReferenceCall& call, const Items& list) {
  return list.empty() && call.node.attributes.get_or<bool>("zeros", false);
}

Items zero_results(const ReferenceCall& call) {
  Items results;
  for (const Value* output : call.node.outputs) results.push_back(zero(call, output->type));
  return results;
}

/// Where the position, which may count from the end, is among that many elements.
size_t index_of(const ReferenceCall& call, int64_t position, size_t size) {
  if (position < 0) position += static_cast<int64_t>(size);
  if (position < 0 || position >= static_cast<int64_t>(size))
    throw RunFailure(cat(call.node.op->name, ": there is no such element"));
  return static_cast<size_t>(position);
}

// ---- Frames and lists ---------------------------------------------------------------------------

Items frame_pack(const ReferenceCall& call) {
  return {shared({call.inputs.begin(), call.inputs.end()})};
}

Items frame_unpack(const ReferenceCall& call) {
  const Items frame = items(call);
  return is_read_as_zeros(call, frame) ? zero_results(call) : frame;
}

Items list_new(const ReferenceCall&) { return {shared({})}; }

Items list_size(const ReferenceCall& call) { return {static_cast<int64_t>(items(call).size())}; }

Items list_push(const ReferenceCall& call) {
  Items list = items(call);
  list.push_back(call.inputs[1]);
  return {shared(std::move(list))};
}

Items list_pop(const ReferenceCall& call) {
  Items list = items(call);
  if (is_read_as_zeros(call, list)) return zero_results(call);
  if (list.empty()) throw RunFailure("list_pop: the list is empty");
  const Datum last = list.back();
  list.pop_back();
  return {shared(std::move(list)), last};
}

// ---- Elements -----------------------------------------------------------------------------------

Items list_item(const ReferenceCall& call) {
  const Items list = items(call);
  return {list[index_of(call, integer(call, 1), list.size())]};
}

Items list_only(const ReferenceCall& call) {
  Items list = zeros(call, integer(call, 2));
  list[index_of(call, integer(call, 1), list.size())] = call.inputs[0];
  return {shared(std::move(list))};
}

Items list_pick(const ReferenceCall& call) {
  const Items list = items(call);
  Items picked;
  for (const Datum& position : items(call, 1))
    picked.push_back(list[index_of(call, std::get<int64_t>(position), list.size())]);
  return {shared(std::move(picked))};
}

Items list_find(const ReferenceCall& call) {
  const Items list = items(call);
  const double wanted = number(call.inputs[1]);
  const auto place =
      std::ranges::find_if(list, [&](const Datum& item) { return number(item) == wanted; });
  return {place == list.end() ? int64_t{-1} : int64_t{place - list.begin()}};
}

Items list_find_object(const ReferenceCall& call) {
  const Items list = items(call);
  const auto found = std::find_if(list.rbegin(), list.rend(), [&](const Datum& each) {
    return identical(each, call.inputs[1]);
  });
  return {found == list.rend() ? int64_t{0} : int64_t{list.rbegin() - found - 1}};
}

Items list_covers(const ReferenceCall& call) {
  std::set<int64_t> found;
  for (const Datum& each : items(call)) found.insert(std::get<int64_t>(each));
  int64_t first_missing = 0;
  while (found.contains(first_missing)) ++first_missing;
  return {first_missing >= integer(call, 1)};
}

// ---- Other lists --------------------------------------------------------------------------------

Items list_reverse(const ReferenceCall& call) {
  Items list = items(call);
  std::ranges::reverse(list);
  return {shared(std::move(list))};
}

Items list_resize(const ReferenceCall& call) {
  const Items list = items(call);
  const int64_t missing = integer(call, 1) - static_cast<int64_t>(list.size());
  Items whole = zeros(call, missing);
  whole.insert(whole.end(), list.begin() + std::max<int64_t>(-missing, 0), list.end());
  return {shared(std::move(whole))};
}

/// Where a slice begins or ends, by the rules of Python.
int64_t bound(const ReferenceCall& call, size_t input, const Items& list) {
  const int64_t position = integer(call, input);
  const auto size = static_cast<int64_t>(list.size());
  return std::clamp<int64_t>(position < 0 ? position + size : position, 0, size);
}

Items list_slice(const ReferenceCall& call) {
  const Items list = items(call);
  const int64_t first = bound(call, 1, list), last = std::max(first, bound(call, 2, list));
  return {shared({list.begin() + first, list.begin() + last})};
}

Items list_join(const ReferenceCall& call) {
  Items list = items(call);
  const Items more = items(call, 1);
  list.insert(list.end(), more.begin(), more.end());
  return {shared(std::move(list))};
}

Items list_order(const ReferenceCall& call) {
  const Items list = items(call);
  const bool descends = std::get<bool>(call.inputs[1]);
  std::vector<int64_t> order(list.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  const auto comes_first = [&](int64_t a, int64_t b) {
    if (descends) std::swap(a, b);
    return number(list[static_cast<size_t>(a)]) < number(list[static_cast<size_t>(b)]);
  };
  std::ranges::sort(order, [&](int64_t a, int64_t b) {
    return comes_first(a, b) || (!comes_first(b, a) && a < b);
  });
  return {shared({order.begin(), order.end()})};
}

// ---- Sums ---------------------------------------------------------------------------------------

Items sum_of(Items one, Items other);

void add(Datum& to, const Datum& other) {
  if (const auto* list = std::get_if<SharedList>(&to))
    to = shared(sum_of((*list)->items, std::get<SharedList>(other)->items));
  if (!std::holds_alternative<DenseTensor>(to)) return;
  auto& sum = std::get<DenseTensor>(to);
  const auto& tensor = std::get<DenseTensor>(other);
  for (size_t i = 0; i < sum.elements.size(); ++i)
    sum.elements[i] = graph::Number::of(sum.at(i) + tensor.at(i), sum.dtype);
}

Items sum_of(Items one, Items other) {
  if (one.size() < other.size()) std::swap(one, other);
  for (size_t i = 0; i < other.size(); ++i) add(one[one.size() - other.size() + i], other[i]);
  return one;
}

Items list_sum(const ReferenceCall& call) { return {shared(sum_of(items(call), items(call, 1)))}; }

// ---- Lists and tensors --------------------------------------------------------------------------

/// The number of elements behind and in front of a dimension.
std::pair<size_t, size_t> around(const std::vector<int64_t>& sizes, size_t dim) {
  size_t before = 1, behind = 1;
  for (size_t d = 0; d < sizes.size(); ++d)
    if (d != dim) (d < dim ? before : behind) *= static_cast<size_t>(sizes[d]);
  return {before, behind};
}

size_t dim_of(const ReferenceCall& call) {
  return static_cast<size_t>(call.node.attributes.get<int64_t>("dim"));
}

Items list_stack(const ReferenceCall& call) {
  const Items list = items(call);
  DenseTensor whole = call.result();
  const bool numbers = call.node.inputs[0]->type.elements.front().is_number();
  const size_t dim = numbers ? 0 : dim_of(call);
  if (static_cast<int64_t>(list.size()) != whole.sizes[dim] || list.empty())
    throw RunFailure("list_stack: the list has another length");
  const auto [before, behind] = around(whole.sizes, dim);
  for (size_t i = 0; i < list.size(); ++i) {
    if (numbers) {
      const TypedNumber element = typed_number(list[i]);
      whole.elements[i] = converted(element.number, element.dtype, whole.dtype);
      continue;
    }
    const auto& part = std::get<DenseTensor>(list[i]);
    for (size_t k = 0; k < before * behind; ++k)
      whole.elements[(k / behind * list.size() + i) * behind + k % behind] = part.elements[k];
  }
  return {whole};
}

Items list_unstack(const ReferenceCall& call) {
  const DenseTensor& whole = call.tensor(0);
  const size_t dim = dim_of(call);
  const auto [before, behind] = around(whole.sizes, dim);
  const auto count = static_cast<size_t>(whole.sizes[dim]);
  std::vector<int64_t> sizes = whole.sizes;
  sizes.erase(sizes.begin() + static_cast<ptrdiff_t>(dim));
  Items parts;
  for (size_t i = 0; i < count; ++i) {
    DenseTensor part(whole.dtype, sizes);
    for (size_t k = 0; k < before * behind; ++k)
      part.elements[k] = whole.elements[(k / behind * count + i) * behind + k % behind];
    parts.emplace_back(std::move(part));
  }
  return {shared(std::move(parts))};
}

}  // namespace

void add_containers(Reference::Functions& functions) {
  functions[&op::frame_pack] = frame_pack;
  functions[&op::frame_unpack] = frame_unpack;
  functions[&op::list_new] = list_new;
  functions[&op::list_push] = list_push;
  functions[&op::list_pop] = list_pop;
  functions[&op::list_size] = list_size;
  functions[&op::list_item] = list_item;
  functions[&op::list_reverse] = list_reverse;
  functions[&op::list_resize] = list_resize;
  functions[&op::list_sum] = list_sum;
  functions[&op::list_only] = list_only;
  functions[&op::list_stack] = list_stack;
  functions[&op::list_unstack] = list_unstack;
  functions[&op::list_slice] = list_slice;
  functions[&op::list_join] = list_join;
  functions[&op::list_pick] = list_pick;
  functions[&op::list_order] = list_order;
  functions[&op::list_find] = list_find;
  functions[&op::list_find_object] = list_find_object;
  functions[&op::list_covers] = list_covers;
}

}  // namespace janus::ops
