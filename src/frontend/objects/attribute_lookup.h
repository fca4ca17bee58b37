// One attribute of one object, by Python's own order, unless its class has a `__getattribute__` of
// its own: data descriptors of the type, the instance's dictionary, other descriptors and class
// attributes, then `__getattr__`. Each step is assumed to go the same way at each later entry. (The
// inside of attributes.h.)
#pragma once

#include <string>

#include "frontend/core/class_of.h"
#include "frontend/core/interpreter.h"

namespace janus::frontend {

/// The interned str.
python::Object name_object(Interpreter& interpreter, const std::string& name);
/// Whether it is a class that Python code made, which can change.
bool is_heap_type(PyTypeObject* type);
/// What is reached from `base` by one more step.
Value wrap_step(Interpreter& interpreter, PyObject* object, const Source* base, Source::Kind kind,
                const python::Object& key);

/// What reading and writing an attribute have in common.
class NamedAttribute {
 protected:
  NamedAttribute(Interpreter& interpreter, const Value& self, std::string name)
      : interpreter_(interpreter),
        self_(self),
        instance_(as<Instance>(self)),
        known_(instance_ == nullptr ? *as<Known>(self) : no_object_),
        object_(known_.object.get()),
        type_(class_of(self)),
        text_(std::move(name)),
        name_(name_object(interpreter, text_)) {}
  /// Of any object of the class: only what the class says.
  NamedAttribute(Interpreter& interpreter, const Value& self, PyTypeObject* type, std::string name)
      : interpreter_(interpreter),
        self_(self),
        instance_(nullptr),
        known_(no_object_),
        object_(nullptr),
        type_(type),
        text_(std::move(name)),
        name_(name_object(interpreter, text_)) {}
  /// Under which parts of the object are reached.
  const Source* path();
  const Source* type_path();
  Interpreter& interpreter_;
  const Value self_;
  const Known no_object_{python::Object(), nullptr};
  Instance* instance_;  // made in the run; else `known_` existed before
  const Known& known_;
  PyObject* object_;
  PyTypeObject* type_;
  std::string text_;
  python::Object name_;
};

/// Reads it.
class Lookup : NamedAttribute {
 public:
  Lookup(Interpreter& interpreter, const Value& self, std::string name)
      : NamedAttribute(interpreter, self, std::move(name)) {}
  Lookup(Interpreter& interpreter, const Value& self, PyTypeObject* type, std::string name)
      : NamedAttribute(interpreter, self, type, std::move(name)) {}
  /// As the object's class says: by its `__getattribute__`, if it has one.
  Value run();
  /// object.__getattribute__, of an object that is no module and no class.
  Value run_general();

  /// What the object's own dictionary has; null if nothing.
  Value own_value() { return instance_value(); }

  /// What the type has under the name, as it is: assumed to stay.
  PyObject* descriptor();

  /// As `descriptor`, for classes whose objects are asked by Python's general rules only.
  PyObject* general_descriptor();

  /// What the type has under the name, bound to self; null if nothing.
  Value special();

 private:
  /// Whether attributes are found by Python's general rules; a class of the program could be given
  /// rules of its own later, so that is an assumption.
  bool has_general_lookup();
  /// What the class has as `__getattribute__`.
  PyObject* find_lookup() const;
  /// That is a function of the program: what it gives, or else `__getattr__`.
  Value run_written();
  const Source* descriptor_path();
  void find_descriptor();
  bool is_plain_value() const;

  /// What the run has stored under the name in the class or one of its bases.
  Value changed_in(PyTypeObject* type);
  Value instance_attribute();
  Value data_descriptor();
  Value exception_attribute();
  Value cached_property();

  /// A descriptor whose class is written in Python: what its `__get__` gives.
  Value written_descriptor(PyObject* descriptor, const Source* path, const Value& object,
                           const Value& owner);

  /// A field of a named tuple.
  Value tuple_field();
  Value instance_value();
  Value field() { return made_item(*instance_->fields); }

  /// What a dict that the run made has under the name.
  Value made_item(const Dictionary& dict);
  Value bound_descriptor();

  /// A property, also of a class derived from it that reads as it does.
  bool is_property() const;
  Value wrapped_function();

  /// The instance's own dictionary entry `key` as a known dict, if it has one.
  Value module_table(const char* key);

  /// nn.Module keeps parameters, buffers and submodules in three dictionaries.
  Value module_part();
  Value fallback();

  /// Attributes of a class: its own and inherited ones, bound as the class binds them.
  Value class_attribute();
  PyObject* descriptor_ = nullptr;  // kept alive by the type
};

// --- attributes of objects that are no Known or Instance
// (frontend/objects/virtual_attributes.cpp); null: there is none

Value super_attribute(Interpreter& interpreter, const Super& super, const std::string& name);
Value tensor_attribute(Interpreter& interpreter, const std::shared_ptr<Tensor>& tensor,
                       const std::string& name);
/// Stores an attribute of a tensor of before the call in its own dictionary; null: deletes it.
void write_tensor_attribute(Interpreter& interpreter, const std::shared_ptr<Tensor>& tensor,
                            const std::string& name, const Value& value);
/// Of containers, functions, methods and iterators of the run.
Value virtual_attribute(Interpreter& interpreter, const Value& value, const std::string& name);
/// Methods of a virtual object's class that are written in Python (named tuples have such).
Value class_method(Interpreter& interpreter, const Value& value, const std::string& name);

}  // namespace janus::frontend
