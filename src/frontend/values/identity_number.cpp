#include "frontend/values/identity_number.h"

#include <algorithm>
#include <set>

#include "python/type_slots.h"

namespace janus::frontend {

using python::Object;
using python::slot;

namespace {

/// A number does not keep alive what the run makes: in a dict that holds its own id that would be a
/// cycle.
struct Numbered {
  const void* interpretation;
  Value known;
  std::weak_ptr<AbstractValue> made;
};

struct IdentityNumber {
  PyObject_HEAD Numbered* of;
};

/// All of this thread.
thread_local std::vector<PyObject*> numbers;

Numbered& numbered(PyObject* number) { return *reinterpret_cast<IdentityNumber*>(number)->of; }

void deallocate(PyObject* number) {
  std::erase(numbers, number);
  delete &numbered(number);
  PyTypeObject* const type = Py_TYPE(number);
  type->tp_free(number);
  Py_DECREF(type);
}

void set_error() {
  PyErr_SetString(PyExc_RuntimeError, "the id of an object that only the run knows");
}
PyObject* no_text(PyObject* /*number*/) {
  set_error();
  return nullptr;
}
Py_hash_t no_hash(PyObject* /*number*/) {
  set_error();
  return -1;
}

PyTypeObject* number_class() {
  static PyType_Slot slots[] = {{Py_tp_dealloc, slot(deallocate)},
                                {Py_tp_repr, slot(no_text)},
                                {Py_tp_hash, slot(no_hash)},
                                {0, nullptr}};
  static PyType_Spec spec = {"torchjanus.IdentityNumber", sizeof(IdentityNumber), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  static auto* const type =
      reinterpret_cast<PyTypeObject*>(python::check(PyType_FromSpec(&spec)).release());
  return type;
}

/// The objects whose numbers were given in this interpretation, and are assumed to stay.
struct LastingNumbers {
  std::weak_ptr<const speculate::SourceTable> interpretation;
  std::set<const void*> addresses;
};
thread_local LastingNumbers lasting;

}  // namespace

bool is_identity_number(PyObject* object) {
  return object != nullptr && Py_IS_TYPE(object, number_class());
}

bool has_identity_number(PyObject* object) {
  if (object == nullptr || !PyTuple_CheckExact(object)) return is_identity_number(object);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); ++i)
    if (has_identity_number(PyTuple_GET_ITEM(object, i))) return true;
  return false;
}

Value numbered_by(PyObject* number) {
  if (!is_identity_number(number)) return nullptr;
  const Numbered& of = numbered(number);
  return of.known != nullptr ? of.known : of.made.lock();
}

Object make_identity_number(const void* interpretation, const Value& of) {
  Object made = Object::steal(number_class()->tp_alloc(number_class(), 0));
  if (!made) throw python::ErrorSet();
  const bool is_known = as<Known>(of) != nullptr;
  reinterpret_cast<IdentityNumber*>(made.get())->of =
      new Numbered{interpretation, is_known ? of : nullptr,
                   is_known ? std::weak_ptr<AbstractValue>() : std::weak_ptr(of)};
  numbers.push_back(made.get());
  return made;
}

std::vector<PyObject*> identity_numbers_of(const void* interpretation) {
  std::vector<PyObject*> found;
  std::ranges::copy_if(numbers, std::back_inserter(found), [&](PyObject* number) {
    return numbered(number).interpretation == interpretation;
  });
  return found;
}

bool is_lasting_number(PyObject* number) {
  if (!PyLong_CheckExact(number)) return false;
  const void* const address = PyLong_AsVoidPtr(number);
  PyErr_Clear();
  return lasting.addresses.contains(address);
}

void begin_lasting_numbers(const std::shared_ptr<const speculate::SourceTable>& interpretation) {
  if (lasting.interpretation.lock() != interpretation) lasting = {interpretation, {}};
}

void note_lasting_number(PyObject* object) { lasting.addresses.insert(object); }

}  // namespace janus::frontend
