// See reference_library.h.
#include "reference_library.h"

#include <algorithm>
#include <set>

#include "base/check.h"
#include "graph/copier.h"
#include "graph/interpreter.h"
#include "ops/list.h"
#include "ops/reference.h"

namespace janus::execute::fake {

using graph::Datum;
using graph::DenseTensor;
using graph::DType;
using graph::Number;

namespace {

template <class Visit>
void for_each_element(const Tensor& tensor, Visit&& visit) {
  const auto& sizes = tensor.layout.sizes;
  std::vector<int64_t> index(sizes.size(), 0);
  const int64_t count = tensor.layout.element_count();
  for (int64_t i = 0; i < count; ++i) {
    int64_t offset = 0;
    for (size_t d = 0; d < sizes.size(); ++d) offset += index[d] * tensor.layout.strides[d];
    visit(static_cast<size_t>(i), tensor.data + offset * graph::byte_size(tensor.layout.dtype));
    for (size_t d = sizes.size(); d-- > 0;) {
      if (++index[d] < sizes[d]) break;
      index[d] = 0;
    }
  }
}

Number read(const char* data, DType dtype) {
  switch (dtype) {
    case DType::f32:
      return {.real = *reinterpret_cast<const float*>(data)};
    case DType::f64:
      return {.real = *reinterpret_cast<const double*>(data)};
    case DType::i64:
      return {.integer = *reinterpret_cast<const int64_t*>(data)};
    case DType::b1:
      return {.integer = *data != 0 ? 1 : 0};
    default:
      TORCHJANUS_CHECK(false, "reference library: dtype ", graph::name(dtype));
  }
}

void write(char* data, DType dtype, Number number) {
  switch (dtype) {
    case DType::f32:
      *reinterpret_cast<float*>(data) = static_cast<float>(number.real);
      break;
    case DType::f64:
      *reinterpret_cast<double*>(data) = number.real;
      break;
    case DType::i64:
      *reinterpret_cast<int64_t*>(data) = number.integer;
      break;
    case DType::b1:
      *data = number.integer != 0 ? 1 : 0;
      break;
    default:
      TORCHJANUS_CHECK(false, "reference library: dtype ", graph::name(dtype));
  }
}

void put(const DenseTensor& from, Tensor& to) {
  for_each_element(to, [&](size_t i, char* data) { write(data, from.dtype, from.elements[i]); });
}

void add_symbols(const graph::Shape& shape, std::set<std::string>& names) {
  for (const graph::Dim& dim : shape)
    for (const std::string& name : dim.symbols()) names.insert(name);
}

/// One node, as a graph that the interpreter runs.
class SingleNode {
 public:
  SingleNode(const graph::Node& node, const SymbolLookup& symbols) : graph_("one") {
    graph::Builder builder(graph_);
    graph::Copier copies(graph::Copier::Unknown::error);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const graph::Value* input = node.inputs[i];
      if (copies.has(input)) continue;
      copies.set(input, builder.input(input->type, cat("v", input->id)));
      positions_.push_back(i);
    }
    std::set<std::string> names;
    for (const graph::Value* output : node.outputs) add_symbols(output->type.shape, names);
    for (const auto& [name, value] : node.attributes) {
      if (const auto* dim = std::get_if<graph::Dim>(&value)) add_symbols({*dim}, names);
      if (const auto* shape = std::get_if<graph::Shape>(&value)) add_symbols(*shape, names);
    }
    for (const std::string& name : names) {
      builder.input(graph::Type::i64(), name);
      sizes_.push_back(symbols(name).value());
    }
    graph_.body().results = copies.copy(node, builder)->outputs;
  }

  const graph::Graph& graph() const { return graph_; }

  graph::Outcome run(const Operands& operands,
                     std::span<const graph::ObjectReference> objects = {}) const {
    std::vector<Datum> inputs;
    for (const size_t position : positions_) inputs.push_back(datum_of(operands.in(position)));
    for (const int64_t size : sizes_) inputs.emplace_back(size);
    return graph::interpret(graph_, inputs, {}, ops::reference(), objects);
  }

 private:
  graph::Graph graph_;
  std::vector<size_t> positions_;  ///< of the node's different operands
  std::vector<int64_t> sizes_;     ///< of the symbols that it depends on
};

class ReferenceOperation final : public Operation {
 public:
  ReferenceOperation(Library& library, const graph::Node& node, const SymbolLookup& symbols)
      : library_(library), node_(node, symbols) {}

  void run(const Operands& operands) override {
    ++library_.calls;
    const std::vector<Datum> results = node_.run(operands).results;
    for (size_t i = 0; i < results.size(); ++i) operands.out(i) = slot_of(library_, results[i]);
  }
  bool can_run_into() const override {
    return std::ranges::all_of(node_.graph().results(),
                               [](const graph::Value* value) { return value->type.is_tensor(); });
  }
  /// All that can: results are computed before the first is written.
  bool can_run_in_place() const override {
    const auto inputs = node_.graph().inputs(), results = node_.graph().results();
    return !inputs.empty() && results.size() == 1 && inputs[0]->type == results[0]->type;
  }
  void run_into(const Operands& operands) override {
    ++library_.calls_into;
    const std::vector<Datum> results = node_.run(operands).results;
    for (size_t i = 0; i < results.size(); ++i)
      put(std::get<DenseTensor>(results[i]), get(operands.out(i)));
  }

 private:
  Library& library_;
  SingleNode node_;
};

class ReferenceRead final : public HeapRead {
 public:
  ReferenceRead(Library& library, const std::vector<graph::ObjectReference>& objects,
                const graph::Node& node, const SymbolLookup& symbols)
      : library_(library), objects_(objects), node_(node, symbols) {}

  bool run(const Operands& operands) override {
    const graph::Outcome outcome = node_.run(operands, objects_);
    if (!outcome.ok()) return false;
    operands.out(0) = slot_of(library_, outcome.results[0]);
    return true;
  }

 private:
  Library& library_;
  const std::vector<graph::ObjectReference>& objects_;
  SingleNode node_;
};

}  // namespace

bool ReferenceLibrary::is_certain(const graph::Node& node) const {
  return node.op->is(graph::Trait::pure) && !node.op->is(graph::Trait::may_fail);
}

std::unique_ptr<Operation> ReferenceLibrary::bind(const graph::Node& node,
                                                  const SymbolLookup& symbols) {
  return std::make_unique<ReferenceOperation>(*this, node, symbols);
}

Slot ReferenceHeap::object(int64_t number) const {
  return slot_of(library_, objects_[static_cast<size_t>(number)]);
}

std::unique_ptr<HeapRead> ReferenceHeap::bind(const graph::Node& node,
                                              const SymbolLookup& symbols) const {
  return std::make_unique<ReferenceRead>(library_, objects_, node, symbols);
}

Slot slot_of(Library& library, const Datum& datum) {
  if (const auto* object = std::get_if<graph::ObjectReference>(&datum))
    return Slot::borrow_object(const_cast<graph::DatumObject*>(object->get()));
  if (const auto* flag = std::get_if<bool>(&datum)) return Slot::of(*flag);
  if (const auto* integer = std::get_if<int64_t>(&datum)) return Slot::of(*integer);
  if (const auto* real = std::get_if<double>(&datum)) return Slot::of(*real);
  const auto* tensor = std::get_if<DenseTensor>(&datum);
  if (tensor == nullptr) return Slot::none();
  Slot slot = library.allocate(contiguous_layout(tensor->dtype, tensor->sizes));
  put(*tensor, get(slot));
  return slot;
}

Datum datum_of(const Slot& slot) {
  switch (slot.kind()) {
    case Slot::Kind::boolean:
      return slot.boolean();
    case Slot::Kind::i64:
      return slot.i64();
    case Slot::Kind::f64:
      return slot.f64();
    case Slot::Kind::tensor: {
      DenseTensor tensor(get(slot).layout.dtype, get(slot).layout.sizes);
      for_each_element(get(slot), [&](size_t i, const char* data) {
        tensor.elements[i] = read(data, tensor.dtype);
      });
      return tensor;
    }
    case Slot::Kind::object:
      return graph::ObjectReference(graph::ObjectReference(),
                                    static_cast<const graph::DatumObject*>(slot.object()));
    default:
      return graph::None{};
  }
}

}  // namespace janus::execute::fake
