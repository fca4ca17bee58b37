// copy.deepcopy of tensors and of containers of them, such as a module's state. All other objects
// are copied by Python's own code, if that can be converted.
#include <map>
#include <set>

#include "frontend/autograd/grad_attribute.h"
#include "frontend/core/known_callables.h"
#include "frontend/core/operations.h"
#include "frontend/objects/special_callables.h"
#include "frontend/tensors/callables.h"
#include "frontend/tensors/tensor.h"
#include "frontend/values/constants.h"
#include "frontend/values/make.h"
#include "frontend/values/strides.h"
#include "ops/list.h"

namespace janus::frontend {

using python::Object;

namespace {

bool is_atomic(PyObject* object) {
  return is_immutable_constant(object) || PyType_Check(object) || PyFunction_Check(object) ||
         PyCFunction_Check(object);
}

/// Thrown where something else is met.
struct NotCopied {};

class DeepCopy {
 public:
  explicit DeepCopy(Interpreter& interpreter) : interpreter_(interpreter) {}

  Value of(const Value& value) {
    const Value original = opened(interpreter_, value);
    if (const auto earlier = copies_.find(original.get()); earlier != copies_.end())
      return earlier->second;
    originals_.push_back(original);
    switch (original->kind) {
      case ValueKind::number:
        return original;
      case ValueKind::known:
        if (is_atomic(as<Known>(original)->object.get())) return original;
        throw NotCopied{};
      case ValueKind::tensor:
        return copies_[original.get()] = of_tensor(shared_as<Tensor>(original));
      case ValueKind::sequence:
        return of_sequence(*as<Sequence>(original), original);
      case ValueKind::dictionary:
        return of_dictionary(*as<Dictionary>(original));
      default:
        throw NotCopied{};
    }
  }

 private:
  /// Python copies the whole storage that a tensor is a view of. A clone is the same only where the
  /// tensor is all of its storage, and no other copy shares it.
  Value of_tensor(const std::shared_ptr<Tensor>& tensor) {
    if (tensor->requires_grad || tensor->is_parameter)
      interpreter_.refuse(ReasonCode::autograd, "a copy of a tensor that requires grad");
    const Tensor* memory = tensor.get();
    while (memory->base != nullptr && (memory->producer.is(op::detach) || memory->untracked))
      memory = memory->base.get();
    if (memory->base != nullptr || memory->uncertain_alias || memory->taken_from != nullptr ||
        memory->is_borrowed || has_live_alias(*memory) || !is_contiguous(*tensor) ||
        !memories_.insert(memory).second)
      interpreter_.refuse(ReasonCode::unsupported_tensor,
                          "a deep copy of a tensor that shares its memory");
    if (memory->source != nullptr) interpreter_.kept_apart.insert(memory);
    if (tensor->is_leaf && !is_none(read_grad(interpreter_, tensor)))
      interpreter_.refuse(ReasonCode::autograd, "a copy of a tensor that has a gradient");
    return tensor_by(interpreter_, "Tensor.clone", {tensor});
  }

  Value of_sequence(const Sequence& sequence, const Value& original) {
    if (sequence.elements.rolled() != nullptr || sequence.viewed != nullptr) throw NotCopied{};
    auto copy = std::make_shared<Sequence>(sequence.is_list);
    copy->type = sequence.type;
    copy->most = sequence.most;
    copies_[&sequence] = copy;
    bool changes = sequence.is_list || sequence.type.get() != nullptr;
    for (const Value& element : sequence.elements) {
      copy->elements.push_back(of(element));
      changes |= copy->elements.known().back() != element;
    }
    if (changes) return copy;
    return copies_[&sequence] = original;  // a tuple of what never changes
  }

  Value of_dictionary(const Dictionary& dictionary) {
    // What Python's heap keeps beside a dict's items is not looked at.
    if (dictionary.factory != nullptr || (dictionary.type && dictionary.source != nullptr))
      throw NotCopied{};
    auto copy = made_dict(dictionary.type);
    copies_[&dictionary] = copy;
    for (const auto& [key, value] : dictionary.items) {
      if (!is_immutable_constant(key.get())) throw NotCopied{};
      copy->items.emplace_back(key, of(value));
    }
    if (dictionary.attributes != nullptr)
      for (const auto& [key, value] : dictionary.attributes->items)
        copy->attributes->items.emplace_back(key, of(value));
    return copy;
  }

  Interpreter& interpreter_;
  std::map<const AbstractValue*, Value> copies_;
  std::vector<Value> originals_;  // kept alive
  std::set<const Tensor*> memories_;
};

/// copy.deepcopy(x)
Value call_deep_copy(Interpreter& interpreter, const CallArguments& arguments) {
  if (arguments.positional.size() != 1 || !arguments.keywords.empty()) return nullptr;
  try {
    return DeepCopy(interpreter).of(arguments.positional[0]);
  } catch (const NotCopied&) {
    return nullptr;
  }
}

}  // namespace

std::span<const SpecialCallable> copy_callables() {
  static constexpr SpecialCallable table[] = {{"copy.deepcopy", call_deep_copy}};
  return table;
}

}  // namespace janus::frontend
