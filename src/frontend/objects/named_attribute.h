// What reading and writing an attribute have in common: the object or class that is asked, the
// name, and the access paths of what is found.
#pragma once

#include <string>

#include "frontend/core/class_of.h"
#include "frontend/core/interpreter.h"

namespace janus::frontend {

/// The interned str.
python::Object name_object(const Frames& frames, const std::string& name);

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

}  // namespace janus::frontend
