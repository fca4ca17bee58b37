#include "speculate/tensor_class.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "python/object.h"
#include "python/origin.h"
#include "python/version.h"

namespace janus::speculate {
namespace {

using python::Object;

/// Special methods that graphs never use: for printing, pickling, introspection, and exchange with
/// other libraries.
constexpr std::string_view kUnused[] = {"__array__",
                                        "__array_wrap__",
                                        "__dlpack__",
                                        "__dlpack_device__",
                                        "__class_getitem__",
                                        "__dict__",
                                        "__dir__",
                                        "__doc__",
                                        "__format__",
                                        "__getstate__",
                                        "__module__",
                                        "__reduce__",
                                        "__reduce_ex__",
                                        "__repr__",
                                        "__setstate__",
                                        "__sizeof__",
                                        "__slots__",
                                        "__str__",
                                        "__subclasshook__",
                                        "__weakref__",
                                        "__annotations__",
                                        "__annotate_func__",      // since Python 3.14
                                        "__annotations_cache__",  // 3.14, once they were read
                                        "__conditional_annotations__",
                                        "__firstlineno__",  // 3.13
                                        "__static_attributes__",
                                        "__init_subclass__",
                                        "__abstractmethods__"};

/// Special methods that torch.Tensor does not have. If the program adds one, syntax calls it.
constexpr const char* kMayBeAdded[] = {"__getattr__", "__imatmul__", "__divmod__", "__rdivmod__",
                                       "__round__",   "__trunc__",   "__floor__",  "__ceil__",
                                       "__call__",    "__enter__",   "__exit__",   "__del__"};

bool is_special(std::string_view name) {
  return name.starts_with("__") && name.ends_with("__") &&
         std::ranges::find(kUnused, name) == std::end(kUnused);
}

bool is_property(PyObject* object) {
  return Py_TYPE(object) == &PyGetSetDescr_Type || Py_TYPE(object) == &PyMemberDescr_Type ||
         Py_TYPE(object) == &PyProperty_Type;
}

/// One class and its remembered attributes.
class WatchedClass {
 public:
  WatchedClass(std::string name, Object type) : name_(std::move(name)), object_(std::move(type)) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(type_()->tp_mro); ++i)
      remember(reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(type_()->tp_mro, i)));
    for (const char* name : kMayBeAdded) watch(python::string(name));
    remember_called();
    changed();
  }

  /// The name of the first attribute that differs; null if none does.
  const std::string* changed() {
    const unsigned version = python::version_of(type_());
    if (version != 0 && version == seen_version_) return differs_.empty() ? nullptr : &differs_;
    differs_.clear();
    for (auto& [name, found] : found_)
      if (differs(found)) {
        differs_ = cat("a replaced ", name_, ".", name);
        break;
      }
    seen_version_ = python::version_of(type_());
    return differs_.empty() ? nullptr : &differs_;
  }

 private:
  struct Found {
    Object name, value;
    bool is_own;  ///< it is torch's, not the program's
  };

  PyTypeObject* type_() const { return reinterpret_cast<PyTypeObject*>(object_.get()); }

  static bool is_own(PyObject* value) {
    return value == nullptr || python::is_made_by(value, "torch");
  }

  /// Whether the attribute differs. If the program had replaced torch's own before, the original is
  /// known once the program restores it.
  bool differs(Found& found) const {
    PyObject* value = _PyType_Lookup(type_(), found.name.get());
    if (!found.is_own && is_own(value)) {
      found.value = Object::borrow(value);
      found.is_own = true;
    }
    return !found.is_own || value != found.value.get();
  }

  void watch(Object name) {
    PyObject* interned = name.release();
    PyUnicode_InternInPlace(&interned);
    name = Object::steal(interned);
    Object value = Object::borrow(_PyType_Lookup(type_(), interned));
    const bool is_torchs = is_own(value.get());
    found_.try_emplace(python::to_string(interned),
                       Found{std::move(name), std::move(value), is_torchs});
  }

  void remember(PyTypeObject* base) {
    Py_ssize_t position = 0;
    PyObject *key = nullptr, *value = nullptr;
    while (PyDict_Next(python::class_dict(base), &position, &key, &value) != 0)
      if (PyUnicode_CheckExact(key) &&
          (is_special(python::to_string(key)) || is_old(base, key, value)))
        watch(Object::borrow(key));
  }

  /// Whether the property is torch's or hides one of torch's. Properties that the program added do
  /// not matter.
  static bool is_old(PyTypeObject* type, PyObject* name, PyObject* property) {
    if (!is_property(property)) return false;
    if (is_own(property)) return true;
    PyTypeObject* base = type->tp_base;
    return base != nullptr && _PyType_Lookup(base, name) != nullptr;
  }

  /// Remembers methods that torch's special methods in Python call, such as `reciprocal` for `1 /
  /// x`.
  void remember_called() {
    std::vector<Object> names;
    for (const auto& [name, found] : found_) {
      if (!found.value) continue;
      const Object inner = python::try_attribute(found.value.get(), "__wrapped__");
      PyObject* function = inner ? inner.get() : found.value.get();
      if (!PyFunction_Check(function)) continue;
      const Object used = python::attribute(PyFunction_GET_CODE(function), "co_names");
      for (Object& each : python::elements(used.get())) names.push_back(std::move(each));
    }
    for (Object& each : names) watch(std::move(each));
  }

  const std::string name_;
  const Object object_;
  std::map<std::string, Found> found_;
  unsigned seen_version_ = 0;
  std::string differs_;
};

std::vector<WatchedClass>& watched() {
  static auto* const all = new std::vector<WatchedClass>();
  return *all;
}

}  // namespace

void remember_tensor_class() {
  watched().emplace_back("torch.Tensor", python::import_attribute("torch", "Tensor"));
  watched().emplace_back("torch.nn.Parameter", python::import_attribute("torch.nn", "Parameter"));
}

const char* changed_tensor_class() {
  for (WatchedClass& each : watched())
    if (const std::string* name = each.changed()) return name->c_str();
  return nullptr;
}

}  // namespace janus::speculate
