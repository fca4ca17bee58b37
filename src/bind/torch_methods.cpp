#include "bind/torch_methods.h"

#include <torch/csrc/Storage.h>
#include <torch/csrc/autograd/python_variable.h>

#include <array>
#include <string_view>

#include "base/check.h"
#include "lazy/session.h"
#include "python/object.h"
#include "torch/exposed.h"
#include "torch/interception_keys.h"

namespace janus::bind {

namespace {

/// Runs what a tensor within (nested) lists waits for.
void settle_within(PyObject* object, int depth) {
  constexpr int kDeepest = 16;
  if (THPVariable_Check(object)) {
    const at::Tensor& tensor = THPVariable_Unpack(object);
    if (tensor.defined() && tensor.has_storage())
      lazy::Session::settle(*tensor.storage().unsafeGetStorageImpl());
  } else if ((PyList_Check(object) || PyTuple_Check(object)) && depth < kDeepest) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object); ++i)
      settle_within(PySequence_Fast_GET_ITEM(object, i), depth + 1);
  }
}

/// `torch.tensor([loss, 2.0])` reads tensors among numbers.
void before_conversion(PyObject* /*self*/, PyObject* arguments) {
  if (!torch::is_intercepted() || arguments == nullptr || !PyTuple_Check(arguments)) return;
  settle_within(arguments, 0);
}

/// Somebody gets the address of a tensor's memory.
void before_exposure(PyObject* self, PyObject* arguments) {
  PyObject* tensor = self;
  if (tensor == nullptr || PyModule_Check(tensor))
    tensor = arguments != nullptr && PyTuple_Check(arguments) && PyTuple_GET_SIZE(arguments) > 0
                 ? PyTuple_GET_ITEM(arguments, 0)
                 : arguments;
  if (tensor == nullptr) return;
  if (THPVariable_Check(tensor)) {
    const at::Tensor& value = THPVariable_Unpack(tensor);
    if (value.defined() && value.has_storage())
      torch::note_exposed(*value.storage().unsafeGetStorageImpl());
  } else if (THPStorage_Check(tensor)) {
    torch::note_exposed(*THPStorage_Unpack(tensor).unsafeGetStorageImpl());
  }
}

/// The storage is about to get memory of another size.
void before_resize(PyObject* self, PyObject* /*arguments*/) {
  if (self != nullptr && THPStorage_Check(self))
    lazy::Session::serve_pointer(*THPStorage_Unpack(self).unsafeGetStorageImpl());
}

binaryfunc item_of_storage = nullptr;

/// `storage[1]` reads the memory; `storage[2:4]` is another storage in it.
PyObject* watched_item_of_storage(PyObject* self, PyObject* index) {
  if (THPStorage_Check(self)) {
    const c10::StorageImpl& storage = *THPStorage_Unpack(self).unsafeGetStorageImpl();
    lazy::Session::settle(storage);
    if (PySlice_Check(index)) torch::note_exposed(storage);
  }
  return item_of_storage(self, index);
}

void watch_items_of(PyObject* storage) {
  const python::Object found = python::check(PyObject_GetAttrString(storage, "__getitem__"));
  if (item_of_storage != nullptr || Py_TYPE(found.get()) != &PyWrapperDescr_Type) return;
  auto* const wrapper = reinterpret_cast<PyWrapperDescrObject*>(found.get());
  item_of_storage = reinterpret_cast<binaryfunc>(wrapper->d_wrapped);
  wrapper->d_wrapped = reinterpret_cast<void*>(watched_item_of_storage);
}

void make_ordinary(PyObject* object) {
  if (object == nullptr) return;
  if (PyTuple_Check(object)) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); ++i)
      make_ordinary(PyTuple_GET_ITEM(object, i));
  } else if (THPVariable_Check(object)) {
    const at::Tensor& tensor = THPVariable_Unpack(object);
    if (!tensor.defined() || !tensor.key_set().has(torch::kLazyTensor)) return;
    lazy::Session::settle(*tensor.storage().unsafeGetStorageImpl());
    torch::remove_lazy_key(*tensor.unsafeGetTensorImpl());
  }
}

/// `new`, `type` and `isinstance(x, torch.DoubleTensor)` ask a tensor's keys for its device.
void before_asking_for_device(PyObject* self, PyObject* arguments) {
  make_ordinary(self);
  make_ordinary(arguments);
}

void before_new_tensor(PyObject* self, PyObject* arguments) {
  make_ordinary(self);
  before_conversion(self, arguments);
}

using Before = void (*)(PyObject*, PyObject*);

/// One function of torch's. Functions of C have no place for data, so each has code of its own.
template <size_t index>
struct Watched {
  static inline PyMethodDef* method = nullptr;
  static inline PyCFunction original = nullptr;
  static inline Before before = nullptr;

  static PyObject* call(PyObject* self, PyObject* arguments) {
    before(self, arguments);
    return original(self, arguments);
  }
  static PyObject* call_with_keywords(PyObject* self, PyObject* arguments, PyObject* keywords) {
    before(self, arguments);
    return reinterpret_cast<PyCFunctionWithKeywords>(reinterpret_cast<void*>(original))(
        self, arguments, keywords);
  }

  static void watch(PyMethodDef* definition, Before what) {
    if (definition == nullptr || method != nullptr) return;
    const int flags = definition->ml_flags & ~(METH_STATIC | METH_CLASS);
    method = definition;
    original = definition->ml_meth;
    before = what;
    if (flags == (METH_VARARGS | METH_KEYWORDS))
      definition->ml_meth =
          reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&Watched::call_with_keywords));
    else if (flags == METH_VARARGS || flags == METH_NOARGS || flags == METH_O)
      definition->ml_meth = &Watched::call;
  }
};

/// The definition of `owner.name`; null if it is no function of C.
PyMethodDef* definition_of(PyObject* owner, const char* name) {
  const python::Object found = python::Object::steal(PyObject_GetAttrString(owner, name));
  if (!found) {
    PyErr_Clear();
    return nullptr;
  }
  if (PyCFunction_Check(found.get()))
    return reinterpret_cast<PyCFunctionObject*>(found.get())->m_ml;
  if (Py_TYPE(found.get()) == &PyMethodDescr_Type)
    return reinterpret_cast<PyMethodDescrObject*>(found.get())->d_method;
  return nullptr;
}

}  // namespace

void watch_torch_methods() {
  const python::Object torch = python::check(PyImport_ImportModule("torch"));
  const python::Object core = python::check(PyObject_GetAttrString(torch.get(), "_C"));
  const python::Object tensor = python::check(PyObject_GetAttrString(core.get(), "TensorBase"));
  const python::Object storage = python::check(PyObject_GetAttrString(core.get(), "StorageBase"));
  Watched<0>::watch(definition_of(torch.get(), "tensor"), before_conversion);
  Watched<1>::watch(definition_of(torch.get(), "as_tensor"), before_conversion);
  Watched<2>::watch(definition_of(torch.get(), "asarray"), before_conversion);
  Watched<3>::watch(definition_of(tensor.get(), "new_tensor"), before_new_tensor);
  Watched<4>::watch(definition_of(tensor.get(), "numpy"), before_exposure);
  Watched<5>::watch(definition_of(tensor.get(), "data_ptr"), before_exposure);
  Watched<6>::watch(definition_of(storage.get(), "data_ptr"), before_exposure);
  Watched<7>::watch(definition_of(core.get(), "_to_dlpack"), before_exposure);
  Watched<8>::watch(definition_of(core.get(), "_to_dlpack_versioned"), before_exposure);
  Watched<9>::watch(definition_of(storage.get(), "resize_"), before_resize);
  watch_items_of(storage.get());
  Watched<10>::watch(definition_of(tensor.get(), "new"), before_asking_for_device);
  Watched<11>::watch(definition_of(tensor.get(), "type"), before_asking_for_device);
  const python::Object legacy = python::check(PyObject_GetAttrString(torch.get(), "DoubleTensor"));
  auto* const kind_of_types = reinterpret_cast<PyObject*>(Py_TYPE(legacy.get()));
  Watched<12>::watch(definition_of(kind_of_types, "__instancecheck__"), before_asking_for_device);
}

}  // namespace janus::bind
