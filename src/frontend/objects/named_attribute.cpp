// The path of a class starts at the object that was asked, or at the class itself where the run
// made the object.
#include "frontend/objects/named_attribute.h"

#include "frontend/objects/attributes.h"

namespace janus::frontend {

using python::Object;

Object name_object(const Frames& frames, const std::string& name) {
  Object text =
      frames.must(PyUnicode_FromStringAndSize(name.data(), static_cast<Py_ssize_t>(name.size())));
  PyObject* interned = text.release();
  PyUnicode_InternInPlace(&interned);
  return Object::steal(interned);
}

bool is_heap_type(PyTypeObject* type) { return (type->tp_flags & Py_TPFLAGS_HEAPTYPE) != 0; }

Value wrap_step(Interpreter& interpreter, PyObject* object, const Source* base, Source::Kind kind,
                const Object& key) {
  return interpreter.wrap(object, interpreter.sources().step(kind, base, key));
}

const Source* NamedAttribute::path() { return path_of(interpreter_, known_); }

const Source* NamedAttribute::type_path() {
  if (instance_ != nullptr)
    return interpreter_.sources().root(Source::Kind::constant, instance_->type);
  if (object_ == nullptr)
    return interpreter_.sources().root(Source::Kind::constant,
                                       Object::borrow(reinterpret_cast<PyObject*>(type_)));
  return interpreter_.sources().step(Source::Kind::type, path());
}

}  // namespace janus::frontend
