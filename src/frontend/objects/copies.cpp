// copy.deepcopy of tensors and of containers of them, such as a module's state; copy.copy of
// objects of plain classes. All other objects are copied by Python's own code, if that can be
// converted.
#include <map>
#include <set>

#include "frontend/autograd/grad_attribute.h"
#include "frontend/core/class_entry.h"
#include "frontend/core/class_of.h"
#include "frontend/core/identity_numbers.h"
#include "frontend/core/keys.h"
#include "frontend/core/known_callables.h"
#include "frontend/core/nesting.h"
#include "frontend/core/object_kinds.h"
#include "frontend/core/operations.h"
#include "frontend/core/torch_objects.h"
#include "frontend/objects/attribute_lookup.h"
#include "frontend/objects/attributes.h"
#include "frontend/objects/instances.h"
#include "frontend/objects/partials.h"
#include "frontend/objects/special_callables.h"
#include "frontend/tensors/callables.h"
#include "frontend/tensors/tensor.h"
#include "frontend/values/constants.h"
#include "frontend/values/make.h"
#include "frontend/values/strides.h"
#include "ops/list.h"
#include "python/version.h"

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
        PyDict_GetItemString(python::class_dict(&PyBaseObject_Type), method))
      return false;
  const Object key = Object::borrow(reinterpret_cast<PyObject*>(type));
  for (const char* path : {copying.functions, "copyreg.dispatch_table"}) {
    PyObject* const table = imported(path);
    if (table == nullptr) continue;  // `copy.copy` has none since Python 3.14
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
  /// `memo`: the dict that the caller gives, and gets back with the copies in it; null: none.
  DeepCopy(Interpreter& interpreter, std::shared_ptr<Dictionary> memo)
      : interpreter_(interpreter), memo_(std::move(memo)) {}

  Value of(const Value& value) {
    const Value original = opened(interpreter_, value);
    if (const auto earlier = copies_.find(original.get()); earlier != copies_.end())
      return earlier->second;
    originals_.push_back(original);
    if (const Value given = in_memo(original)) return given;
    const Value copy = copy_of(original);
    if (copy != original) {
      remember(original, copy);
      keep_alive(original);
    }
    return copy;
  }

 private:
  Value copy_of(const Value& original) {
    const Nesting deeper(interpreter_);
    switch (original->kind) {
      case ValueKind::number:
        return original;
      case ValueKind::known:
        if (is_atomic(as<Known>(original)->object.get())) return original;
        return of_object(original);
      case ValueKind::instance:
        return of_object(original);
      case ValueKind::tensor:
        if (memo_ != nullptr) throw NotCopied{};  // it gets the storage, too
        return copies_[original.get()] = of_tensor(shared_as<Tensor>(original));
      case ValueKind::sequence:
        return of_sequence(*as<Sequence>(original), original);
      case ValueKind::dictionary:
        return of_dictionary(*as<Dictionary>(original), original);
      default:
        throw NotCopied{};
    }
  }

  /// What the memo has for the object; null: nothing.
  Value in_memo(const Value& original) {
    if (memo_ == nullptr) return nullptr;
    PyObject* const constant = known_object(original);
    const bool is_constant = constant != nullptr && is_immutable_constant(constant);
    for (const auto& [number, copy] : memo_->items) {
      PyObject* const other = known_object(numbered_by(number.get()));
      if (!is_identity_number(number.get()) && !is_lasting_number(number.get())) throw NotCopied{};
      if (!is_constant) {
        if (is_number_of(interpreter_, number.get(), original)) return copy;
      } else if (other != nullptr && same_constant(constant, other)) {
        // Whether equal constants are one object must not matter.
        PyObject* const copied = known_object(copy);
        if (copied == nullptr || !same_constant(constant, copied)) throw NotCopied{};
        return original;
      }
    }
    return nullptr;
  }

  /// memo[id(original)] = copy
  void remember(const Value& original, const Value& copy) {
    if (memo_ != nullptr) change_item(interpreter_, *memo_, number_of(original), copy);
  }

  /// memo[id(memo)] is a list of what must live as long as the memo.
  void keep_alive(const Value& original) {
    if (memo_ == nullptr) return;
    const Object own = number_of(memo_);
    for (const auto& [number, kept] : memo_->items)
      if (number.is(own.get())) return as<Sequence>(kept)->elements.push_back(original);
    change_item(interpreter_, *memo_, own, make_list({original}));
  }

  Object number_of(const Value& value) {
    Object number = identity_number(interpreter_, value);
    if (!number) throw NotCopied{};
    return number;
  }

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
    if (sequence.is_list) remember(original, copy);
    bool changes = sequence.is_list || sequence.type.get() != nullptr;
    for (const Value& element : sequence.elements) {
      copy->elements.push_back(of(element));
      changes |= copy->elements.known().back() != element;
    }
    if (changes) return copy;
    return copies_[&sequence] = original;  // a tuple of what never changes
  }

  Value of_dictionary(const Dictionary& dictionary, const Value& original) {
    // What Python's heap keeps beside a dict's items is not looked at.
    if (dictionary.factory != nullptr || (dictionary.type && dictionary.source != nullptr))
      throw NotCopied{};
    auto copy = made_dict(dictionary.type);
    copies_[&dictionary] = copy;
    remember(original, copy);
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
      if (class_of(original) == class_of(earlier) && identical(interpreter_, original, earlier))
        return copy;
    if (is_partial(class_of(original))) return of_partial(original);
    const auto [attributes, copy] = parts_of(interpreter_, original, kDeep);
    if (attributes == nullptr || copy == nullptr) throw NotCopied{};
    objects_.emplace_back(original, copy);
    remember(original, copy);
    if (attributes->items.empty()) return copy;
    const Value state = of(attributes);
    copy->fields->items = as<Dictionary>(state)->items;
    return copy;
  }

  /// Python copies what the partial calls first, and then all that its `__reduce__` tells.
  Value of_partial(const Value& original) {
    if (as<Known>(original) != nullptr) {
      const Value own = opened(interpreter_, attribute(interpreter_, original, "__dict__"));
      if (!as<Dictionary>(own)->items.empty()) throw NotCopied{};
    }
    const Value function = attribute(interpreter_, original, "func");
    const auto copy = shared_as<Instance>(make_partial(of(function), {}));
    objects_.emplace_back(original, copy);
    remember(original, copy);
    const Value state =
        of(make_tuple({function, attribute(interpreter_, original, "args"),
                       attribute(interpreter_, original, "keywords"), interpreter_.none()}));
    const auto& parts = as<Sequence>(state)->elements;
    for (size_t i = 0; i < copy->fields->items.size(); ++i)
      copy->fields->items[i].second = parts[i];
    return copy;
  }

  Interpreter& interpreter_;
  const std::shared_ptr<Dictionary> memo_;
  std::map<const AbstractValue*, Value> copies_;
  std::vector<std::pair<Value, Value>> objects_;  // by identity: several paths may lead to one
  std::vector<Value> originals_;                  // kept alive
  std::set<const Tensor*> memories_;
};

/// copy.deepcopy(x, memo=None)
Value call_deep_copy(Interpreter& interpreter, const CallArguments& arguments) {
  const size_t count = arguments.positional.size();
  const Value* memo = count == 2 ? &arguments.positional[1] : arguments.keyword("memo");
  const size_t named = arguments.keyword("memo") != nullptr ? 1 : 0;
  if (count < 1 || count + named > 2 || arguments.keywords.size() != named) return nullptr;
  const auto given = memo == nullptr ? nullptr : shared_as<Dictionary>(*memo);
  const bool is_made = given != nullptr && given->source == nullptr && !given->type;
  if (memo != nullptr && !is_made && !is_none(*memo)) return nullptr;
  const auto before = given != nullptr ? given->items : decltype(given->items)();
  try {
    return DeepCopy(interpreter, given).of(arguments.positional[0]);
  } catch (const NotCopied&) {
    if (given != nullptr) given->items = before;
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
