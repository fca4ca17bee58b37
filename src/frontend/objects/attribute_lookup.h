// One attribute of one object, by Python's own order, unless its class has a `__getattribute__` of
// its own: data descriptors of the type, the instance's dictionary, other descriptors and class
// attributes, then `__getattr__`. Each step is assumed to go the same way at each later entry. (The
// inside of attributes.h.)
#pragma once

#include <string>
#include <utility>

#include "frontend/objects/named_attribute.h"

namespace janus::frontend {

/// Whether objects of the class keep some attributes beside their dictionary.
bool has_slots(PyTypeObject* type);

/// Reads an attribute.
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
  Value changed_in(PyTypeObject* type, const Source* path);
  bool is_changed_in(PyTypeObject* type);
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
  Value class_dictionary();
  PyObject* descriptor_ = nullptr;  // kept alive by the type
};

}  // namespace janus::frontend
