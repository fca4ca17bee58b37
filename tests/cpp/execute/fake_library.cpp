#include "fake_library.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <stdexcept>

namespace janus::execute::fake {

namespace {

int alive_tensors = 0;

Slot make(Tensor tensor) {
  ++alive_tensors;
  return Slot::steal_tensor(new Tensor(std::move(tensor)));
}

void retain(void* handle) { ++static_cast<Tensor*>(handle)->references; }
void release(void* handle) {
  auto* tensor = static_cast<Tensor*>(handle);
  if (--tensor->references > 0) return;
  --alive_tensors;
  delete tensor;
}

/// Calls `visit(offset)` for the element offsets of a layout in logical order.
void for_each_offset(const Layout& layout, const std::function<void(int64_t)>& visit) {
  std::vector<int64_t> index(layout.sizes.size(), 0);
  for (int64_t n = layout.element_count(); n > 0; --n) {
    int64_t offset = 0;
    for (size_t d = 0; d < index.size(); ++d) offset += index[d] * layout.strides[d];
    visit(offset);
    for (size_t d = index.size(); d-- > 0;) {
      if (++index[d] < layout.sizes[d]) break;
      index[d] = 0;
    }
  }
}

float& at(const Slot& slot, int64_t row, int64_t column) {
  const Tensor& tensor = get(slot);
  return reinterpret_cast<float*>(
      tensor.data)[row * tensor.layout.strides[0] + column * tensor.layout.strides[1]];
}

void multiply(const Operands& operands) {
  const Layout& out = get(operands.out(0)).layout;
  const int64_t inner = get(operands.in(0)).layout.sizes[1];
  for (int64_t i = 0; i < out.sizes[0]; ++i) {
    for (int64_t j = 0; j < out.sizes[1]; ++j) {
      float sum = 0;
      for (int64_t k = 0; k < inner; ++k)
        sum += at(operands.in(0), i, k) * at(operands.in(1), k, j);
      at(operands.out(0), i, j) = sum;
    }
  }
}

class FakeOperation final : public Operation {
 public:
  FakeOperation(Library& library, std::string name) : library_(library), name_(std::move(name)) {}

  void run(const Operands& operands) override {
    ++library_.calls;
    if (name_ == library_.throw_in) throw std::runtime_error("it failed");
    if (name_ == "mm") {
      operands.out(0) = library_.allocate(contiguous_layout(
          graph::DType::f32,
          {get(operands.in(0)).layout.sizes[0], get(operands.in(1)).layout.sizes[1]}));
      multiply(operands);
    } else if (name_ == "t") {
      Layout layout = get(operands.in(0)).layout;
      std::swap(layout.sizes[0], layout.sizes[1]);
      std::swap(layout.strides[0], layout.strides[1]);
      operands.out(0) = library_.share(operands.in(0), 0, layout);
    } else if (name_ == "clone") {  // an operator that can't write into given memory
      operands.out(0) = library_.allocate(get(operands.in(0)).layout);
      library_.copy(operands.out(0), operands.in(0));
    } else if (name_ == "opaque") {  // two results: x + 1, 2 x
      for (size_t i = 0; i < 2; ++i) {
        operands.out(i) = library_.allocate(get(operands.in(0)).layout);
        const std::vector<float> from = elements(library_, operands.in(0));
        auto* to = reinterpret_cast<float*>(get(operands.out(i)).data);
        for (size_t k = 0; k < from.size(); ++k) to[k] = i == 0 ? from[k] + 1 : 2 * from[k];
      }
    } else if (name_ == "rand_like") {
      operands.out(0) = library_.allocate(get(operands.in(0)).layout);
      for (float *p = reinterpret_cast<float*>(get(operands.out(0)).data),
                 *end = p + get(operands.in(0)).layout.element_count();
           p < end; ++p) {
        *p = static_cast<float>(++library_.random_state_now);
      }
    } else {
      throw std::runtime_error("the fake library has no " + name_);
    }
  }

  bool can_run_into() const override { return name_ == "mm"; }
  bool can_run_beside() const override { return name_ == "mm" && library_.products_run_beside; }
  void run_into(const Operands& operands) override {
    ++library_.calls_into;
    if (name_ == library_.throw_in) throw std::runtime_error("it failed");
    multiply(operands);
  }

 private:
  Library& library_;
  std::string name_;
};

class FakeRandomState final : public RandomState {
 public:
  explicit FakeRandomState(Library& library) : library_(library) {}
  void save() override { saved_ = library_.random_state_now; }
  void restore() override { library_.random_state_now = saved_; }
  std::unique_ptr<RandomState> copy() const override {
    return std::make_unique<FakeRandomState>(*this);
  }

 private:
  Library& library_;
  int saved_ = 0;
};

}  // namespace

Library::Library() {
  tensor_operations() = {retain, release};
  object_operations() = {[](void*) {}, [](void*) {}};  // tests keep what they use
}

Tensor& get(const Slot& tensor) { return *static_cast<Tensor*>(tensor.tensor()); }
int alive() { return alive_tensors; }

Layout Library::layout(const Slot& tensor) const { return get(tensor).layout; }
bool Library::has_layout(const Slot& tensor, graph::DType dtype, std::span<const int64_t> sizes,
                         std::span<const int64_t> strides) const {
  const Layout found = layout(tensor);
  return found.dtype == dtype && std::ranges::equal(found.sizes, sizes) &&
         std::ranges::equal(found.strides, strides);
}
void* Library::data(const Slot& tensor) const { return get(tensor).data; }
const void* Library::storage(const Slot& tensor) const { return get(tensor).storage.get(); }

bool Library::has_no_other_owner(const Slot& tensor) const {
  return !tensor.is_alias() && get(tensor).references == 1 && get(tensor).storage.use_count() == 1;
}

Slot Library::take_over(Slot& tensor) {
  const bool has_other_owner = get(tensor).references != 2 || get(tensor).storage.use_count() != 1;
  return has_other_owner ? Slot() : std::move(tensor);
}

Slot Library::allocate(const Layout& layout) {
  ++allocations;
  Tensor tensor;
  tensor.layout = layout;
  tensor.storage = std::make_shared<std::vector<char>>(layout.span_bytes(), char{0x7f});
  tensor.data = tensor.storage->data();
  return make(std::move(tensor));
}

Slot Library::over_memory(void* memory, const Layout& layout) {
  Tensor tensor;
  tensor.layout = layout;
  tensor.storage = std::make_shared<std::vector<char>>();
  tensor.data = static_cast<char*>(memory);
  return make(std::move(tensor));
}

void Library::repoint(Slot& tensor, void* memory) { get(tensor).data = static_cast<char*>(memory); }

Slot Library::share(const Slot& base, int64_t byte_offset, const Layout& layout) {
  Tensor tensor = get(base);
  tensor.references = 1;
  tensor.layout = layout;
  tensor.data += byte_offset;
  return make(std::move(tensor));
}

void Library::copy(Slot& to, const Slot& from) {
  ++copies;
  const auto size = static_cast<size_t>(graph::byte_size(get(to).layout.dtype));
  std::vector<char> values;
  for_each_offset(get(from).layout, [&](int64_t offset) {
    const char* element = get(from).data + static_cast<size_t>(offset) * size;
    values.insert(values.end(), element, element + size);
  });
  size_t next = 0;
  for_each_offset(get(to).layout, [&](int64_t offset) {
    std::copy_n(&values[next], size, get(to).data + static_cast<size_t>(offset) * size);
    next += size;
  });
}

Slot Library::sum(const Slot& one, const Slot& other) {
  Layout layout = get(one).layout;
  layout.strides = contiguous_strides(layout.sizes);
  Slot result = allocate(layout);
  copy(result, one);
  Slot addend = allocate(layout);
  copy(addend, other);
  TORCHJANUS_CHECK(layout.dtype == graph::DType::f64, "fake library: a sum of other numbers");
  auto* to = reinterpret_cast<double*>(get(result).data);
  const auto* from = reinterpret_cast<const double*>(get(addend).data);
  for (int64_t i = 0; i < layout.span_bytes() / 8; ++i) to[i] += from[i];
  return result;
}

void Library::bump_version(Slot& tensor, int64_t by) { get(tensor).version += by; }

std::unique_ptr<Operation> Library::bind(const graph::Node& node, const SymbolLookup&) {
  return std::make_unique<FakeOperation>(*this, std::string(node.op->name));
}

bool Library::is_certain(const graph::Node& node) const {
  return certain.contains(std::string(node.op->name));
}

void Library::run_placed(Operation& operation, const Operands& operands,
                         std::span<Placement> placements) {
  operation.run(operands);
  if (placing == Placing::none) return;
  std::vector<std::vector<float>> contents;
  for (const Placement& placement : placements) {
    contents.push_back(elements(*this, operands.out(placement.output)));
  }
  for (size_t i = 0; i < placements.size(); ++i) {
    const size_t place = placing == Placing::swapped ? placements.size() - 1 - i : i;
    Slot& result = operands.out(placements[i].output);
    Layout layout = get(result).layout;
    if (placing == Placing::transposed) std::reverse(layout.strides.begin(), layout.strides.end());
    result = over_memory(placements[place].memory, layout);
    size_t next = 0;
    for_each_offset(layout, [&](int64_t offset) {
      reinterpret_cast<float*>(get(result).data)[offset] = contents[i][next++];
    });
  }
}

void Library::run_beside(std::span<const OperationCall> calls) {
  ++groups;
  largest_group = std::max(largest_group, calls.size());
  // In the other order: none may need another.
  for (size_t i = calls.size(); i-- > 0;) calls[i].operation->run_into(calls[i].operands);
}

std::unique_ptr<RandomState> Library::random_state() {
  return std::make_unique<FakeRandomState>(*this);
}

std::optional<Failure> Library::protect(Unlock, void (*body)(void*), void* context) {
  try {
    body(context);
    return std::nullopt;
  } catch (const InternalError&) {
    throw;
  } catch (const std::exception& error) {
    Failure failure;
    failure.kind = Failure::Kind::operation;
    failure.message = error.what();
    return failure;
  }
}

Slot tensor(Library& library, std::vector<int64_t> sizes, std::vector<float> elements) {
  Slot slot = library.allocate(contiguous_layout(graph::DType::f32, std::move(sizes)));
  std::memcpy(get(slot).data, elements.data(), elements.size() * sizeof(float));
  return slot;
}

std::vector<float> elements(const Library&, const Slot& tensor) {
  std::vector<float> values;
  for_each_offset(get(tensor).layout, [&](int64_t offset) {
    values.push_back(reinterpret_cast<const float*>(get(tensor).data)[offset]);
  });
  return values;
}

}  // namespace janus::execute::fake
