// Reads of Python objects without running any of their code. A result is borrowed from its place,
// and counted while a slot holds it.
#include "speculate/object_heap.h"

#include <structmember.h>

#include "base/check.h"
#include "graph/op.h"
#include "ops/list.h"
#include "python/integer.h"
#include "speculate/path.h"
#include "speculate/tensor_access.h"

namespace janus::speculate {
namespace {

using execute::HeapRead;
using execute::Operands;
using execute::Slot;
using graph::Node;
using graph::Type;

PyObject* object_in(const Operands& operands) {
  return static_cast<PyObject*>(operands.in(0).object());
}

/// Converts an object to a value of a graph type.
class Conversion {
 public:
  Conversion(const Type& type, const execute::SymbolLookup& symbols) : kind_(type.kind) {
    if (!type.is_tensor()) return;
    pattern_.dtype = type.dtype;
    pattern_.may_be_view = true;
    for (const graph::Dim& dim : type.shape) {
      const auto size = dim.evaluate(symbols);
      TORCHJANUS_CHECK(size, "heap: dimension ", dim, " is not known");
      pattern_.dims.push_back(graph::Dim(*size));
    }
    sizes_.resize(type.shape.size());
  }

  bool run(PyObject* object, Slot& result) {
    if (object == nullptr) return false;
    switch (kind_) {
      case Type::Kind::object:
        result = Slot::borrow_object(object);
        return true;
      case Type::Kind::i64:
        return integer(object, result);
      case Type::Kind::f64:
        if (!PyFloat_CheckExact(object)) return false;
        result = Slot::of(PyFloat_AS_DOUBLE(object));
        return true;
      case Type::Kind::boolean:
        if (!PyBool_Check(object)) return false;
        result = Slot::of(object == Py_True);
        return true;
      case Type::Kind::tensor:
        return tensor(object, result);
      default:
        return false;
    }
  }

 private:
  static bool integer(PyObject* object, Slot& result) {
    if (!PyLong_CheckExact(object)) return false;
    const std::optional<int64_t> number = python::int64_of(object);
    if (!number) return false;
    result = Slot::of(*number);
    return true;
  }

  /// Views are accepted if they need no gradient, since they are only read.
  bool tensor(PyObject* object, Slot& result) {
    if (!tensor_access().is_tensor(object)) return false;
    if (!tensor_access().matches(object, pattern_, sizes_.data())) return false;
    result = tensor_access().to_slot(object);
    return true;
  }

  Type::Kind kind_;
  TensorPattern pattern_;
  std::vector<int64_t> sizes_;
};

class IsInstance final : public HeapRead {
 public:
  explicit IsInstance(PyObject* type) : type_(type) {}
  bool run(const Operands& operands) override {
    const bool same = reinterpret_cast<PyObject*>(Py_TYPE(object_in(operands))) == type_;
    operands.out(0) = Slot::of(same);
    return true;
  }

 private:
  PyObject* type_;
};

/// Compares a str, int or bytes with a constant of exactly the same type, which runs no user code.
class EqualsConstant final : public HeapRead {
 public:
  explicit EqualsConstant(PyObject* constant) : constant_(constant) {
    TORCHJANUS_CHECK(PyUnicode_CheckExact(constant) || PyLong_CheckExact(constant) ||
                         PyBytes_CheckExact(constant),
                     "heap: a constant whose comparison may run other code");
  }
  bool run(const Operands& operands) override {
    PyObject* object = object_in(operands);
    const bool equal =
        object == constant_ || (Py_TYPE(object) == Py_TYPE(constant_) &&
                                PyObject_RichCompareBool(object, constant_, Py_EQ) == 1);
    operands.out(0) = Slot::of(equal);
    return true;
  }

 private:
  PyObject* constant_;
};

/// A key of dictionaries, with its hash.
class Key {
 public:
  explicit Key(python::Object key) : key_(std::move(key)), hash_(PyObject_Hash(key_.get())) {
    if (hash_ == -1) throw python::ErrorSet();
  }
  PyObject* object() const { return key_.get(); }
  /// The item; null if the key is missing.
  PyObject* find(PyObject* dict) const {
    PyObject* value = _PyDict_GetItem_KnownHash(dict, key_.get(), hash_);
    if (value == nullptr && PyErr_Occurred() != nullptr) PyErr_Clear();
    return value;
  }

 private:
  python::Object key_;
  Py_hash_t hash_;
};

python::Object interned(const std::string& name) {
  return python::check(PyUnicode_InternFromString(name.c_str()));
}

class HasAttribute final : public HeapRead {
 public:
  explicit HasAttribute(const Node& node)
      : key_(interned(node.attributes.get<std::string>("name"))) {}
  bool run(const Operands& operands) override {
    PyObject* dict = instance_dict(object_in(operands));
    operands.out(0) = Slot::of(dict != nullptr && key_.find(dict) != nullptr);
    return true;
  }

 private:
  Key key_;
};

class Attribute final : public HeapRead {
 public:
  Attribute(const Node& node, const execute::SymbolLookup& symbols)
      : key_(interned(node.attributes.get<std::string>("name"))),
        is_slot_(node.attributes.get_or<bool>("slot", false)),
        conversion_(node.output()->type, symbols) {}

  bool run(const Operands& operands) override {
    PyObject* object = object_in(operands);
    return conversion_.run(is_slot_ ? in_slot(object) : in_dictionary(object), operands.out(0));
  }

 private:
  PyObject* in_dictionary(PyObject* object) const {
    PyObject* dict = instance_dict(object);
    return dict == nullptr ? nullptr : key_.find(dict);
  }

  PyObject* in_slot(PyObject* object) const {
    PyObject* found = _PyType_Lookup(Py_TYPE(object), key_.object());
    if (found == nullptr || !Py_IS_TYPE(found, &PyMemberDescr_Type)) return nullptr;
    const PyMemberDef* member = reinterpret_cast<PyMemberDescrObject*>(found)->d_member;
    if (member->type != T_OBJECT_EX) return nullptr;
    return object_at(object, member->offset);
  }

  Key key_;
  bool is_slot_;
  Conversion conversion_;
};

class Length final : public HeapRead {
 public:
  bool run(const Operands& operands) override {
    PyObject* object = object_in(operands);
    if (!PyList_CheckExact(object) && !PyTuple_CheckExact(object)) return false;
    operands.out(0) = Slot::of(static_cast<int64_t>(Py_SIZE(object)));
    return true;
  }
};

class Item final : public HeapRead {
 public:
  Item(const Node& node, const execute::SymbolLookup& symbols)
      : conversion_(node.output()->type, symbols) {}

  bool run(const Operands& operands) override {
    PyObject* object = object_in(operands);
    if (!PyList_CheckExact(object) && !PyTuple_CheckExact(object)) return false;
    const auto count = static_cast<int64_t>(Py_SIZE(object));
    int64_t index = operands.in(1).i64();
    if (index < 0) index += count;
    if (index < 0 || index >= count) return false;
    return conversion_.run(PySequence_Fast_GET_ITEM(object, index), operands.out(0));
  }

 private:
  Conversion conversion_;
};

/// The key of a dictionary's item.
python::Object key_of(const graph::AttributeValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return interned(*text);
  return python::check(PyLong_FromLongLong(std::get<int64_t>(value)));
}

class Entry final : public HeapRead {
 public:
  Entry(const Node& node, const execute::SymbolLookup& symbols)
      : key_(key_of(*node.attributes.find("key"))), conversion_(node.output()->type, symbols) {}

  bool run(const Operands& operands) override {
    PyObject* object = object_in(operands);
    return PyDict_CheckExact(object) && conversion_.run(key_.find(object), operands.out(0));
  }

 private:
  Key key_;
  Conversion conversion_;
};

class HasEntry final : public HeapRead {
 public:
  explicit HasEntry(const Node& node) : key_(key_of(*node.attributes.find("key"))) {}
  bool run(const Operands& operands) override {
    PyObject* object = object_in(operands);
    operands.out(0) = Slot::of(PyDict_CheckExact(object) && key_.find(object) != nullptr);
    return true;
  }

 private:
  Key key_;
};

class ObjectValue final : public HeapRead {
 public:
  ObjectValue(const Node& node, const execute::SymbolLookup& symbols)
      : conversion_(node.output()->type, symbols) {}

  bool run(const Operands& operands) override {
    return conversion_.run(object_in(operands), operands.out(0));
  }

 private:
  Conversion conversion_;
};

class ObjectHeap final : public execute::Heap {
 public:
  explicit ObjectHeap(std::vector<python::Object> objects) : objects_(std::move(objects)) {}

  Slot object(int64_t number) const override { return Slot::borrow_object(known(number)); }

  std::unique_ptr<HeapRead> bind(const Node& node,
                                 const execute::SymbolLookup& symbols) const override {
    if (node.op == &op::object_is_instance_of_class)
      return std::make_unique<IsInstance>(known(node.attributes.get<int64_t>("class")));
    if (node.op == &op::object_equals_constant)
      return std::make_unique<EqualsConstant>(known(node.attributes.get<int64_t>("object")));
    if (node.op == &op::object_has_attribute) return std::make_unique<HasAttribute>(node);
    if (node.op == &op::object_attribute) return std::make_unique<Attribute>(node, symbols);
    if (node.op == &op::object_length) return std::make_unique<Length>();
    if (node.op == &op::object_item) return std::make_unique<Item>(node, symbols);
    if (node.op == &op::object_entry) return std::make_unique<Entry>(node, symbols);
    if (node.op == &op::object_has_entry) return std::make_unique<HasEntry>(node);
    if (node.op == &op::object_value) return std::make_unique<ObjectValue>(node, symbols);
    TORCHJANUS_CHECK(false, "heap: no such operator: ", node.op->name);
  }

 private:
  PyObject* known(int64_t number) const {
    TORCHJANUS_CHECK(number >= 0 && static_cast<size_t>(number) < objects_.size(),
                     "heap: there is no object ", number);
    return objects_[static_cast<size_t>(number)].get();
  }

  std::vector<python::Object> objects_;
};

}  // namespace

std::shared_ptr<const execute::Heap> object_heap(std::vector<python::Object> objects) {
  return std::make_shared<ObjectHeap>(std::move(objects));
}

}  // namespace janus::speculate
