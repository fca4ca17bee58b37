// copy.deepcopy of tensors and of containers of them, such as a module's state; copy.copy of
// objects of plain classes. All other objects are copied by Python's own code, if that can be
// converted.
#include <map>
#include <set>

#include "frontend/autograd/grad_attribute.h"
#include "frontend/core/class_entry.h"
#include "frontend/core/class_of.h"
#include "frontend/core/known_callables.h"
#include "frontend/core/object_kinds.h"
#include "frontend/core/operations.h"
#include "frontend/core/torch_objects.h"
#include "frontend/objects/attribute_lookup.h"
#include "frontend/objects/attributes.h"
#include "frontend/objects/instances.h"
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
         PyCFunction_Check(object) || is_torch_constant(object) || is_enumeration(Py_TYPE(object));
}

/// How Python copies: the method that a class may have for it, and the table of its own functions.
struct Copying {
  const char* method;
  const char* functions;
};
constexpr Copying kShallow = {"__copy__", "copy._copy_dispatch"};
constexpr Copying kDeep = {"__deepcopy__", "copy._deepcopy_dispatch"};

/// Whether nothing says how objects of the class are copied: a copy has the same attributes.
bool is_copied_by_attributes(Interpreter& interpreter, PyTypeObject* type, const Copying& copying) {
  for (const char* method :
       {copying.method, "__setstate__", "__getnewargs__", "__getnewargs_ex__", "__getattr__"})
    if (class_entry(interpreter, type, method) != nullptr) return false;
  for (const char* method : {"__reduce_ex__", "__reduce__", "__getstate__", "__new__"})
    if (class_entry(interpreter, type, method) !=
        PyDict_GetItemString(PyBaseObject_Type.tp_dict, method))
      return false;
  const Object key = Object::borrow(reinterpret_cast<PyObject*>(type));
  for (const char* path : {copying.functions, "copyreg.dispatch_table"}) {
    PyObject* const table = imported(path);
    if (PyDict_GetItemWithError(table, key.get()) != nullptr) return false;
    interpreter.assume(Assumption::Kind::missing_key,
                       interpreter.sources().root(Source::Kind::constant, Object::borrow(table)),
                       key);
  }
  return true;
}

/// The attributes of an object that is nothing else, and another object of its class without any;
/// null for other objects.
struct Parts {
  std::shared_ptr<Dictionary> attributes;
  std::shared_ptr<Instance> copy;
};

Parts parts_of(Interpreter& interpreter, const Value& original, const Copying& copying) {
  const bool is_object = as<Instance>(original) != nullptr || as<Known>(original) != nullptr;
  if (!is_object || (class_of(original)->tp_flags & Py_TPFLAGS_HEAPTYPE) == 0) return {};
  PyTypeObject* const type = class_of(original);
  const bool is_attributes = type->tp_dictoffset != 0 && !has_slots(type);
  if (!is_attributes || !is_copied_by_attributes(interpreter, type, copying)) return {};
  // Python asks the object itself, which may have a `__getattribute__`.
  if (attribute_or_null(interpreter, original, copying.method) != nullptr) return {};
  const Value copy = call_object_new(
      interpreter, {.positional = {type_of(interpreter, original)}, .keywords = {}});
  if (copy == nullptr) return {};
  const Value fields = opened(interpreter, attribute(interpreter, original, "__dict__"));
  return {shared_as<Dictionary>(fields), shared_as<Instance>(copy)};
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
        return of_object(original);
      case ValueKind::instance:
        return of_object(original);
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

  Value of_object(const Value& original) {
    for (const auto& [earlier, copy] : objects_)
      if (identical(interpreter_, original, earlier)) return copy;
    const auto [attributes, copy] = parts_of(interpreter_, original, kDeep);
    if (attributes == nullptr || copy == nullptr) throw NotCopied{};
    objects_.emplace_back(original, copy);
    for (const auto& [key, value] : attributes->items)
      copy->fields->items.emplace_back(key, of(value));
    return copy;
  }

  Interpreter& interpreter_;
  std::map<const AbstractValue*, Value> copies_;
  std::vector<std::pair<Value, Value>> objects_;  // by identity: several paths may lead to one
  std::vector<Value> originals_;                  // kept alive
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

/// copy.copy(x) of an object that is its attributes; null for others.
Value call_copy(Interpreter& interpreter, const CallArguments& arguments) {
  if (arguments.positional.size() != 1 || !arguments.keywords.empty()) return nullptr;
  const auto [attributes, copy] = parts_of(interpreter, arguments.positional[0], kShallow);
  if (attributes == nullptr || copy == nullptr) return nullptr;
  copy->fields->items = attributes->items;
  return copy;
}

}  // namespace

std::span<const SpecialCallable> copy_callables() {
  static constexpr SpecialCallable table[] = {{"copy.deepcopy", call_deep_copy},
                                              {"copy.copy", call_copy}};
  return table;
}

}  // namespace janus::frontend
