#include "graph/interpreter.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "base/policy.h"
#include "graph/element_code.h"
#include "graph/functions.h"
#include "graph/op.h"

namespace janus::graph {
namespace {

struct GuardFailure {
  int64_t id;
};

DType dtype_of(const Type& type) {
  switch (type.kind) {
    case Type::Kind::tensor:
      return type.dtype;
    case Type::Kind::i64:
      return DType::i64;
    case Type::Kind::boolean:
      return DType::b1;
    default:
      return DType::f64;
  }
}

Datum number_datum(Number number, const Type& type) {
  if (type.kind == Type::Kind::boolean) return number.integer != 0;
  if (type.kind == Type::Kind::i64) return number.integer;
  return number.real;
}

/// The element of `tensor` that takes part at `index` of the broadcast `sizes`.
size_t broadcast_offset(const DenseTensor& tensor, std::span<const int64_t> index) {
  size_t offset = 0;
  const size_t skipped = index.size() - tensor.sizes.size();
  for (size_t i = 0; i < tensor.sizes.size(); ++i) {
    const int64_t place = tensor.sizes[i] == 1 ? 0 : index[skipped + i];
    offset = offset * static_cast<size_t>(tensor.sizes[i]) + static_cast<size_t>(place);
  }
  return offset;
}

TypedNumber element_of(const Datum& datum, std::span<const int64_t> index) {
  if (const auto* tensor = std::get_if<DenseTensor>(&datum))
    return {tensor->elements[broadcast_offset(*tensor, index)], tensor->dtype};
  if (const auto* flag = std::get_if<bool>(&datum)) return {{.integer = *flag ? 1 : 0}, DType::b1};
  if (const auto* integer = std::get_if<int64_t>(&datum))
    return {{.integer = *integer}, DType::i64};
  if (const auto* real = std::get_if<double>(&datum)) return {{.real = *real}, DType::f64};
  return {};  // none: the program does not read it
}

bool step(std::vector<int64_t>& index, std::span<const int64_t> sizes) {
  for (size_t i = sizes.size(); i-- > 0;) {
    if (++index[i] < sizes[i]) return true;
    index[i] = 0;
  }
  return false;
}

class Run {
 public:
  Run(const Graph& graph, const std::map<std::string, Datum>& cells, const Reference& reference,
      std::span<const ObjectReference> objects)
      : graph_(graph),
        cells_(cells),
        reference_(reference),
        objects_(objects),
        values_(graph.value_count()) {}

  Outcome run(std::span<const Datum> inputs) {
    TORCHJANUS_CHECK(inputs.size() == graph_.inputs().size(), "interpreter: ", inputs.size(),
                     " inputs for ", graph_.inputs().size());
    bind_symbols(inputs);
    try {
      for (size_t i = 0; i < inputs.size(); ++i) set(graph_.inputs()[i], inputs[i]);
      block(graph_.body());
      for (const Value* result : graph_.results()) outcome_.results.push_back(get(result));
      return std::move(outcome_);
    } catch (const GuardFailure& failure) {
      return Outcome{.failed_guard = failure.id};
    } catch (const RunFailure& failure) {
      return Outcome{.failure = failure.what()};
    }
  }

 private:
  void bind_symbols(std::span<const Datum> inputs) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      bind(graph_.inputs()[i]->type, inputs[i]);
      if (const auto* number = std::get_if<int64_t>(&inputs[i]))
        symbols_.try_emplace(graph_.inputs()[i]->name, *number);
    }
    for_each_node(graph_.body(), [&](const Node& node) {
      if (node.op->role != Role::state) return;
      const auto cell = cells_.find(node.attributes.get<std::string>("cell"));
      if (cell != cells_.end()) bind(node.output()->type, cell->second);
    });
  }

  /// Only a bare symbol can be read off a size.
  void bind(const Type& type, const Datum& datum) {
    const auto* tensor = std::get_if<DenseTensor>(&datum);
    if (tensor == nullptr || type.shape.size() != tensor->sizes.size()) return;
    for (size_t i = 0; i < type.shape.size(); ++i) {
      const auto names = type.shape[i].symbols();
      if (names.size() == 1 &&
          (type.shape[i] == Dim::symbol(names[0]) || type.shape[i] == Dim::symbol(names[0], true)))
        symbols_.try_emplace(names[0], tensor->sizes[i]);
    }
  }

  int64_t evaluate(const Dim& dim) const {
    const auto value = dim.evaluate([&](const std::string& name) -> std::optional<int64_t> {
      const auto found = symbols_.find(name);
      return found == symbols_.end() ? std::nullopt : std::optional(found->second);
    });
    if (!value) throw RunFailure(cat("dimension ", dim, " cannot be computed"));
    return *value;
  }

  std::vector<int64_t> sizes_of(const Type& type) const {
    std::vector<int64_t> sizes;
    for (const Dim& dim : type.shape) {
      sizes.push_back(evaluate(dim));
      if (sizes.back() < 0) throw RunFailure(cat("dimension ", dim, " is negative"));
    }
    return sizes;
  }

  const Datum& get(const Value* value) const { return values_[value->id]; }

  bool fits(const Type& type, const Datum& datum) const {
    switch (type.kind) {
      case Type::Kind::tensor: {
        const auto* tensor = std::get_if<DenseTensor>(&datum);
        return tensor != nullptr && tensor->dtype == type.dtype && tensor->sizes == sizes_of(type);
      }
      case Type::Kind::boolean:
        return std::holds_alternative<bool>(datum);
      case Type::Kind::i64:
        return std::holds_alternative<int64_t>(datum);
      case Type::Kind::f64:
        return std::holds_alternative<double>(datum);
      case Type::Kind::str:
        return std::holds_alternative<std::string>(datum);
      case Type::Kind::none:
        return std::holds_alternative<None>(datum);
      case Type::Kind::frame:
      case Type::Kind::list:
        return std::holds_alternative<SharedList>(datum);
      case Type::Kind::object:
        return std::holds_alternative<ObjectReference>(datum);
      default:
        return false;
    }
  }

  /// Every value is checked against its type: a shape rule that is wrong shows here.
  void set(const Value* value, Datum datum) {
    TORCHJANUS_CHECK(fits(value->type, datum), "interpreter: %", value->name, " should be ",
                     value->type, ", is ", datum);
    values_[value->id] = std::move(datum);
  }

  void block(const Block& block) {
    for (const Node* one : block.nodes) node(*one);
  }

  void node(const Node& node) {
    const std::string_view name = node.op->name;
    if (name == "constant")
      set(node.output(), constant(node));
    else if (name == "state")
      set(node.output(), cell(node));
    else if (name == "commit")
      outcome_.committed[node.attributes.get<std::string>("cell")] = get(node.inputs[0]);
    else if (name == "rebind")
      outcome_.rebound[node.attributes.get<std::string>("cell")] =
          node.inputs.size() == 1 || std::get<bool>(get(node.inputs[1])) ? get(node.inputs[0])
                                                                         : Datum(None{});
    else if (name == "guard")
      guard(node);
    else if (name == "size")
      set(node.output(), size(node));
    else if (name == "dimension")
      name_dimension(node);
    else if (name == "if")
      branch(node);
    else if (name == "while")
      loop(node);
    else if (name == "fused")
      inner_block(node, *node.blocks[0]);
    else if (name == "rows")
      rows(node);
    else if (name == "call")
      invoke(node);
    else if (name == "function")
      return;
    else if (name.starts_with("object_"))
      set(node.output(), object(node));
    else if (name.starts_with("frame_") || name.starts_with("list_"))
      container(node);
    else if (node.op->scalar != nullptr)
      set(node.output(), elementwise(node));
    else
      call(node);
  }

  static Datum constant(const Node& node) {
    const AttributeValue& value = *node.attributes.find("value");
    if (const auto* flag = std::get_if<bool>(&value)) return *flag;
    if (const auto* integer = std::get_if<int64_t>(&value)) return *integer;
    if (const auto* real = std::get_if<double>(&value)) return *real;
    if (const auto* text = std::get_if<std::string>(&value)) return *text;
    return None{};
  }

  const Datum& cell(const Node& node) const {
    const std::string name = node.attributes.get<std::string>("cell");
    const auto found = cells_.find(name);
    TORCHJANUS_CHECK(found != cells_.end(), "interpreter: cell ", name, " is not given");
    return found->second;
  }

  void guard(const Node& node) const {
    if (!std::get<bool>(get(node.inputs[0])))
      throw GuardFailure{node.attributes.get<int64_t>("id")};
  }

  void name_dimension(const Node& node) {
    const int64_t size = std::get<int64_t>(get(node.inputs[0]));
    if (size < 2) throw RunFailure("dimension: less than 2");
    symbols_[node.attributes.get<std::string>("symbol")] = size;
    set(node.output(), size);
  }

  int64_t size(const Node& node) const {
    const AttributeValue& of = *node.attributes.find("of");
    if (const auto* number = std::get_if<int64_t>(&of)) return *number;
    return evaluate(std::get<Dim>(of));
  }

  void inner_block(const Node& node, const Block& inner) {
    for (size_t i = 0; i < inner.parameters.size(); ++i)
      set(inner.parameters[i], get(node.inputs[i]));
    block(inner);
    for (size_t i = 0; i < inner.results.size(); ++i) set(node.outputs[i], get(inner.results[i]));
  }

  /// A `rows` node, as a single row.
  void rows(const Node& node) {
    const Block& inner = *node.blocks[0];
    const size_t sums = static_cast<size_t>(node.attributes.get<int64_t>("sums"));
    symbols_[node.attributes.get<std::string>("symbol")] = 1;
    for (size_t i = 0; i < inner.parameters.size(); ++i) {
      const Type& type = inner.parameters[i]->type;
      Datum datum = get(node.inputs[i]);
      if (i + sums < inner.parameters.size()) {
        DenseTensor row(type.dtype, sizes_of(type));
        if (const auto* tensor = std::get_if<DenseTensor>(&datum)) {
          row.elements = tensor->elements;
        } else {
          row.elements[0] = element_of(datum, {}).number;
        }
        datum = std::move(row);
      }
      set(inner.parameters[i], std::move(datum));
    }
    block(inner);
    for (size_t i = 0; i < inner.results.size(); ++i) {
      Datum datum = get(inner.results[i]);
      if (sums == 0) {
        auto& tensor = std::get<DenseTensor>(datum);
        tensor.sizes.erase(tensor.sizes.begin());
      }
      set(node.outputs[i], std::move(datum));
    }
  }

  void branch(const Node& node) {
    const Block& side = *node.blocks[std::get<bool>(get(node.inputs[0])) ? 0 : 1];
    block(side);
    for (size_t i = 0; i < side.results.size(); ++i) set(node.outputs[i], get(side.results[i]));
  }

  void loop(const Node& node) {
    std::vector<Datum> carried;
    for (const Value* input : node.inputs) carried.push_back(get(input));
    const auto enter = [&](const Block& inner) {
      for (size_t i = 0; i < carried.size(); ++i) set(inner.parameters[i], carried[i]);
      block(inner);
    };
    for (int64_t iteration = 0;; ++iteration) {
      TORCHJANUS_CHECK(iteration < policy::kLongestReferenceLoop,
                       "interpreter: a loop does not end");
      enter(*node.blocks[0]);
      if (!std::get<bool>(get(node.blocks[0]->results[0]))) break;
      enter(*node.blocks[1]);
      for (size_t i = 0; i < carried.size(); ++i) carried[i] = get(node.blocks[1]->results[i]);
    }
    for (size_t i = 0; i < carried.size(); ++i) set(node.outputs[i], carried[i]);
  }

  static void collect_values(const Block& block, std::vector<const Value*>& values) {
    values.insert(values.end(), block.parameters.begin(), block.parameters.end());
    for_each_node(block, [&](const Node& node) {
      values.insert(values.end(), node.outputs.begin(), node.outputs.end());
      for (const auto& nested : node.blocks)
        values.insert(values.end(), nested->parameters.begin(), nested->parameters.end());
    });
  }

  /// Calls a function. The values of the invocation around it are restored afterwards.
  void invoke(const Node& node) {
    const Node* function = callee(node);
    TORCHJANUS_CHECK(function != nullptr, "interpreter: function ", function_name(node),
                     " is not there");
    const Block& inner = *function->blocks.front();
    if (++depth_ > policy::kDeepestReferenceCall) throw RunFailure("calls nest too deeply");
    std::vector<const Value*> own;
    collect_values(inner, own);
    std::vector<Datum> arguments, kept, results;
    for (const Value* input : node.inputs) arguments.push_back(get(input));
    for (const Value* value : own) kept.push_back(std::move(values_[value->id]));
    for (size_t i = 0; i < arguments.size(); ++i) set(inner.parameters[i], arguments[i]);
    block(inner);
    for (const Value* result : inner.results) results.push_back(get(result));
    for (size_t i = 0; i < own.size(); ++i) values_[own[i]->id] = std::move(kept[i]);
    for (size_t i = 0; i < results.size(); ++i) set(node.outputs[i], results[i]);
    --depth_;
  }

  // ---- objects

  const ObjectReference& reference_of(const Value* value) const {
    return std::get<ObjectReference>(get(value));
  }

  /// The object's value at a place, if it has the result's type.
  Datum found(const Node& node, const Datum* datum) const {
    if (datum == nullptr || !fits(node.output()->type, *datum))
      throw GuardFailure{node.attributes.get_or<int64_t>("id", -1)};
    return *datum;
  }

  Datum object(const Node& node) const {
    const std::string_view name = node.op->name;
    if (name == "object_constant")
      return objects_[static_cast<size_t>(node.attributes.get<int64_t>("object"))];
    const ObjectReference& object = reference_of(node.inputs[0]);
    if (name == "object_is_instance_of_class")
      return object != nullptr && object->class_number == node.attributes.get<int64_t>("class");
    if (name == "object_is") return object == reference_of(node.inputs[1]);
    if (name == "object_equals_constant")
      return object != nullptr &&
             object == objects_[static_cast<size_t>(node.attributes.get<int64_t>("object"))];
    if (name == "object_has_attribute")
      return object != nullptr &&
             object->attributes.contains(node.attributes.get<std::string>("name"));
    if (name == "object_has_entry")
      return object != nullptr && object->attributes.contains(key_of(node));
    // Numbers and tensors are no objects here.
    if (object == nullptr || name == "object_value") return found(node, nullptr);
    if (name == "object_attribute" || name == "object_entry") return attribute(node, *object);
    if (!object->is_sequence) return found(node, nullptr);
    const auto count = static_cast<int64_t>(object->items.size());
    if (name == "object_length") return count;
    int64_t index = std::get<int64_t>(get(node.inputs[1]));
    if (index < 0) index += count;
    const bool inside = index >= 0 && index < count;
    return found(node, inside ? &object->items[static_cast<size_t>(index)] : nullptr);
  }

  static std::string key_of(const Node& node) {
    const bool is_name = node.op->name == "object_attribute";
    const AttributeValue& key = *node.attributes.find(is_name ? "name" : "key");
    const auto* text = std::get_if<std::string>(&key);
    return text != nullptr ? *text : cat(std::get<int64_t>(key));
  }

  Datum attribute(const Node& node, const DatumObject& object) const {
    const auto place = object.attributes.find(key_of(node));
    return found(node, place == object.attributes.end() ? nullptr : &place->second);
  }

  const std::vector<Datum>& items(const Value* value) const {
    return std::get<SharedList>(get(value))->items;
  }

  static Datum shared(std::vector<Datum> items) {
    return std::make_shared<const DatumList>(std::move(items));
  }

  /// The gradient of a value of this type on which nothing depends.
  Datum zero(const Type& type) const {
    if (type.is_tensor()) return DenseTensor(type.dtype, sizes_of(type));
    return type.is_none() ? Datum(None{}) : shared({});
  }

  /// Frames and lists (ops/container.cpp).
  void container(const Node& node) {
    const std::string_view name = node.op->name;
    std::vector<Datum> list;
    if (name == "frame_pack") {
      for (const Value* input : node.inputs) list.push_back(get(input));
      return set(node.output(), shared(std::move(list)));
    }
    if (!node.inputs.empty() && node.inputs[0]->type.kind != Type::Kind::tensor)
      list = items(node.inputs[0]);
    if (name == "list_size") return set(node.output(), static_cast<int64_t>(list.size()));
    if (list_access(node, list)) return;
    if (list.empty() && node.attributes.get_or<bool>("zeros", false)) {
      for (const Value* output : node.outputs) set(output, zero(output->type));
      return;
    }
    if (name == "frame_unpack") {
      TORCHJANUS_CHECK(list.size() == node.outputs.size(), "interpreter: a frame of ", list.size(),
                       " values for ", node.outputs.size(), " results");
      for (size_t i = 0; i < list.size(); ++i) set(node.outputs[i], list[i]);
      return;
    }
    if (name == "list_push") list.push_back(get(node.inputs[1]));
    if (name == "list_pop") {
      if (list.empty()) throw RunFailure("list_pop: the list is empty");
      set(node.outputs[1], list.back());
      list.pop_back();
    }
    set(node.outputs[0], shared(std::move(list)));
  }

  static std::optional<size_t> index_of(int64_t position, size_t size) {
    if (position < 0) position += static_cast<int64_t>(size);
    const bool inside = position >= 0 && position < static_cast<int64_t>(size);
    return inside ? std::optional(static_cast<size_t>(position)) : std::nullopt;
  }

  /// Operators that read lists (ops/list_access.cpp).
  bool list_access(const Node& node, std::vector<Datum>& list) {
    const std::string_view name = node.op->name;
    const auto integer = [&](size_t input) { return std::get<int64_t>(get(node.inputs[input])); };
    const auto zeros = [&](int64_t count) {
      const Type& type = node.output()->type.elements.front();
      return std::vector<Datum>(static_cast<size_t>(std::max<int64_t>(count, 0)), zero(type));
    };
    if (name == "list_item") {
      const auto index = index_of(integer(1), list.size());
      if (!index) throw RunFailure("list_item: there is no such element");
      set(node.output(), list[*index]);
      return true;
    }
    if (name == "list_find_object") {
      const auto found = std::find_if(list.rbegin(), list.rend(), [&](const Datum& each) {
        return identical(each, get(node.inputs[1]));
      });
      set(node.output(), found == list.rend() ? int64_t{0} : list.rbegin() - found - 1);
      return true;
    }
    if (name == "list_covers") {
      std::set<int64_t> found;
      for (const Datum& each : list) found.insert(std::get<int64_t>(each));
      int64_t first_missing = 0;
      while (found.contains(first_missing)) ++first_missing;
      set(node.output(), first_missing >= integer(1));
      return true;
    }
    if (name == "list_reverse") {
      std::reverse(list.begin(), list.end());
    } else if (name == "list_resize") {
      const int64_t size = integer(1), missing = size - static_cast<int64_t>(list.size());
      std::vector<Datum> whole = zeros(missing);
      const auto first = list.begin() + std::max<int64_t>(-missing, 0);
      whole.insert(whole.end(), first, list.end());
      list = std::move(whole);
    } else if (name == "list_sum") {
      list = sum_of(std::move(list), items(node.inputs[1]));
    } else if (name == "list_only") {
      list = zeros(integer(2));
      const auto index = index_of(integer(1), list.size());
      if (!index) throw RunFailure("list_only: there is no such element");
      list[*index] = get(node.inputs[0]);
    } else if (name == "list_stack") {
      set(node.output(), stacked(node, list));
      return true;
    } else if (name == "list_unstack") {
      list = slices(node);
    } else {
      return rearranged(node, list);
    }
    set(node.output(), shared(std::move(list)));
    return true;
  }

  /// Those that return parts of lists, or search in them.
  bool rearranged(const Node& node, std::vector<Datum>& list) {
    const std::string_view name = node.op->name;
    const auto number = [](const Datum& datum) {
      const TypedNumber typed = element_of(datum, {});
      return typed.number.as_double(typed.dtype);
    };
    const auto begin = [&](size_t input) {
      const int64_t position = std::get<int64_t>(get(node.inputs[input]));
      const auto size = static_cast<int64_t>(list.size());
      return std::clamp<int64_t>(position < 0 ? position + size : position, 0, size);
    };
    if (name == "list_slice") {
      const int64_t first = begin(1), last = std::max(first, begin(2));
      list = std::vector<Datum>(list.begin() + first, list.begin() + last);
    } else if (name == "list_join") {
      const std::vector<Datum> more = items(node.inputs[1]);
      list.insert(list.end(), more.begin(), more.end());
    } else if (name == "list_pick") {
      std::vector<Datum> picked;
      for (const Datum& position : items(node.inputs[1])) {
        const auto index = index_of(std::get<int64_t>(position), list.size());
        if (!index) throw RunFailure("list_pick: there is no such element");
        picked.push_back(list[*index]);
      }
      list = std::move(picked);
    } else if (name == "list_order") {
      const bool descends = std::get<bool>(get(node.inputs[1]));
      std::vector<int64_t> order(list.size());
      std::iota(order.begin(), order.end(), int64_t{0});
      const auto comes_first = [&](int64_t a, int64_t b) {
        if (descends) std::swap(a, b);
        return number(list[static_cast<size_t>(a)]) < number(list[static_cast<size_t>(b)]);
      };
      std::ranges::sort(order, [&](int64_t a, int64_t b) {
        return comes_first(a, b) || (!comes_first(b, a) && a < b);
      });
      list.assign(order.begin(), order.end());
    } else if (name == "list_find") {
      const double wanted = number(get(node.inputs[1]));
      const auto place =
          std::ranges::find_if(list, [&](const Datum& item) { return number(item) == wanted; });
      set(node.output(), place == list.end() ? int64_t{-1} : int64_t{place - list.begin()});
      return true;
    } else {
      return false;
    }
    set(node.output(), shared(std::move(list)));
    return true;
  }

  static std::vector<Datum> sum_of(std::vector<Datum> one, std::vector<Datum> other) {
    if (one.size() < other.size()) std::swap(one, other);
    for (size_t i = 0; i < other.size(); ++i) add(one[one.size() - other.size() + i], other[i]);
    return one;
  }

  static void add(Datum& to, const Datum& other) {
    if (const auto* list = std::get_if<SharedList>(&to))
      to = shared(sum_of((*list)->items, std::get<SharedList>(other)->items));
    if (!std::holds_alternative<DenseTensor>(to)) return;
    auto& sum = std::get<DenseTensor>(to);
    const auto& tensor = std::get<DenseTensor>(other);
    for (size_t i = 0; i < sum.elements.size(); ++i)
      sum.elements[i] = Number::of(sum.at(i) + tensor.at(i), sum.dtype);
  }

  /// The number of elements behind and in front of a dimension.
  static std::pair<size_t, size_t> around(const std::vector<int64_t>& sizes, size_t dim) {
    size_t before = 1, behind = 1;
    for (size_t d = 0; d < sizes.size(); ++d)
      if (d != dim) (d < dim ? before : behind) *= static_cast<size_t>(sizes[d]);
    return {before, behind};
  }

  DenseTensor stacked(const Node& node, const std::vector<Datum>& list) const {
    const Type& type = node.output()->type;
    DenseTensor whole(type.dtype, sizes_of(type));
    const bool numbers = node.inputs[0]->type.elements.front().is_number();
    const size_t dim = numbers ? 0 : static_cast<size_t>(node.attributes.get<int64_t>("dim"));
    if (static_cast<int64_t>(list.size()) != whole.sizes[dim] || list.empty())
      throw RunFailure("list_stack: the list has another length");
    const auto [before, behind] = around(whole.sizes, dim);
    for (size_t i = 0; i < list.size(); ++i) {
      if (numbers) {
        const TypedNumber number = element_of(list[i], {});
        whole.elements[i] = converted(number.number, number.dtype, type.dtype);
        continue;
      }
      const auto& part = std::get<DenseTensor>(list[i]);
      for (size_t k = 0; k < before * behind; ++k)
        whole.elements[(k / behind * list.size() + i) * behind + k % behind] = part.elements[k];
    }
    return whole;
  }

  std::vector<Datum> slices(const Node& node) const {
    const auto& whole = std::get<DenseTensor>(get(node.inputs[0]));
    const auto dim = static_cast<size_t>(node.attributes.get<int64_t>("dim"));
    const auto [before, behind] = around(whole.sizes, dim);
    const auto count = static_cast<size_t>(whole.sizes[dim]);
    std::vector<int64_t> sizes = whole.sizes;
    sizes.erase(sizes.begin() + static_cast<ptrdiff_t>(dim));
    std::vector<Datum> parts;
    for (size_t i = 0; i < count; ++i) {
      DenseTensor part(whole.dtype, sizes);
      for (size_t k = 0; k < before * behind; ++k)
        part.elements[k] = whole.elements[(k / behind * count + i) * behind + k % behind];
      parts.emplace_back(std::move(part));
    }
    return parts;
  }

  /// Python's arithmetic on numbers: in floats if one operand is, else in integers.
  static DType compute_dtype_of_numbers(const Node& node) {
    const auto is_real = [](const Value* value) { return value->type.kind == Type::Kind::f64; };
    const bool real =
        is_real(node.output()) || std::any_of(node.inputs.begin(), node.inputs.end(), is_real);
    return real ? DType::f64 : DType::i64;
  }

  DType compute_dtype(const Node& node) const {
    if (!node.output()->type.is_tensor()) return compute_dtype_of_numbers(node);
    return reference_.compute_dtype(node);
  }

  Datum elementwise(const Node& node) const {
    TORCHJANUS_CHECK(node.outputs.size() == 1, node.op->name, ": elementwise with ",
                     node.outputs.size(), " results");
    const Type& type = node.output()->type;
    ElementCode code(node, compute_dtype(node), !type.is_tensor());
    std::vector<const Datum*> operands;
    for (const Value* input : node.inputs) operands.push_back(&get(input));
    std::vector<int64_t> index(type.shape.size(), 0);
    const auto compute = [&] {
      std::vector<TypedNumber> numbers;
      for (const Datum* operand : operands) numbers.push_back(element_of(*operand, index));
      return code.run(numbers, dtype_of(type));
    };
    if (!type.is_tensor()) return number_datum(compute(), type);
    DenseTensor result(type.dtype, sizes_of(type));
    for (Number& element : result.elements) {
      element = compute();
      step(index, result.sizes);
    }
    return result;
  }

  void call(const Node& node) {
    const auto function = reference_.functions.find(node.op->name);
    TORCHJANUS_CHECK(function != reference_.functions.end(), "interpreter: operator ",
                     node.op->name, " is not known to the reference");
    std::vector<Datum> inputs;
    for (const Value* input : node.inputs) inputs.push_back(get(input));
    std::vector<Datum> results = function->second(ReferenceCall{
        .node = node, .inputs = inputs, .evaluate = [&](const Dim& dim) { return evaluate(dim); }});
    TORCHJANUS_CHECK(results.size() == node.outputs.size(), "interpreter: ", node.op->name,
                     " gave ", results.size(), " results");
    for (size_t i = 0; i < results.size(); ++i) set(node.outputs[i], std::move(results[i]));
  }

  const Graph& graph_;
  const std::map<std::string, Datum>& cells_;
  const Reference& reference_;
  const std::span<const ObjectReference> objects_;
  std::vector<Datum> values_;  // by Value::id; in a function those of the innermost invocation
  int64_t depth_ = 0;          // of calls
  std::map<std::string, int64_t> symbols_;
  Outcome outcome_;
};

}  // namespace

const DenseTensor& ReferenceCall::tensor(size_t input) const {
  const auto* tensor = std::get_if<DenseTensor>(&inputs[input]);
  TORCHJANUS_CHECK(tensor != nullptr, node.op->name, ": operand ", input, " is not a tensor");
  return *tensor;
}

double ReferenceCall::number(size_t input) const {
  const Datum& datum = inputs[input];
  if (const auto* flag = std::get_if<bool>(&datum)) return *flag ? 1 : 0;
  if (const auto* integer = std::get_if<int64_t>(&datum)) return static_cast<double>(*integer);
  const auto* real = std::get_if<double>(&datum);
  TORCHJANUS_CHECK(real != nullptr, node.op->name, ": operand ", input, " is not a number");
  return *real;
}

DenseTensor ReferenceCall::result(size_t index) const {
  const Type& type = node.outputs[index]->type;
  std::vector<int64_t> sizes;
  for (const Dim& dim : type.shape) sizes.push_back(evaluate(dim));
  return DenseTensor(type.dtype, std::move(sizes));
}

Outcome interpret(const Graph& graph, std::span<const Datum> inputs,
                  const std::map<std::string, Datum>& cells, const Reference& reference,
                  std::span<const ObjectReference> objects) {
  return Run(graph, cells, reference, objects).run(inputs);
}

}  // namespace janus::graph
