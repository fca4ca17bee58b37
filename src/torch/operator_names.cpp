// Builtins of torch are bindings of ATen operators of the same name; those that do more in the
// binding than call the operator are left out. What stands in `torch.ops` names its operator
// itself.
#include "torch/operator_names.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/jit/runtime/operator.h>

#include <map>
#include <set>
#include <string_view>

namespace janus::torch {

namespace {

/// Bindings whose arguments or results are not the operator's: they convert between Python and
/// tensors, move between devices, or change the tensor itself.
const std::set<std::string_view>& special_bindings() {
  static const std::set<std::string_view> names{"item",
                                                "tolist",
                                                "numpy",
                                                "backward",
                                                "requires_grad_",
                                                "to",
                                                "cpu",
                                                "cuda",
                                                "type",
                                                "new",
                                                "new_tensor",
                                                "data_ptr",
                                                "size",
                                                "stride",
                                                "dim",
                                                "numel",
                                                "nelement",
                                                "is_contiguous",
                                                "storage",
                                                "set_",
                                                "apply_",
                                                "map_",
                                                "map2_",
                                                "detach_",
                                                "resize_",
                                                "record_stream",
                                                "share_memory_",
                                                "pin_memory",
                                                "is_pinned",
                                                "copy_",
                                                "tensor",
                                                "as_tensor",
                                                "from_numpy",
                                                "from_file",
                                                "frombuffer",
                                                "range",
                                                "sparse_coo_tensor",
                                                "empty",
                                                "empty_like",
                                                "empty_strided",
                                                "new_empty",
                                                "is_floating_point",
                                                "is_complex",
                                                "is_signed",
                                                "element_size",
                                                "get_device",
                                                "storage_offset",
                                                "equal",
                                                "is_nonzero",
                                                "is_same_size",
                                                "allclose",
                                                "nonzero",
                                                "unique",
                                                "masked_select",
                                                "nonzero_static",
                                                "bincount",
                                                "unique_consecutive",
                                                "_unique2",
                                                "unique_dim",
                                                "new_empty_strided",
                                                "_make_subclass",
                                                "asarray",
                                                "contiguous_",
                                                "rename",
                                                "rename_",
                                                "names"};
  return names;
}

/// The attribute of a module or class that lies at a path of names below `torch`.
python::Object torch_attribute(std::initializer_list<const char*> path) {
  python::Object object = python::Object::steal(PyImport_ImportModule("torch"));
  for (const char* name : path) {
    if (object) object = python::Object::steal(PyObject_GetAttrString(object.get(), name));
  }
  PyErr_Clear();
  return object;
}

/// All bindings of ATen operators, by identity of the callable.
class Bindings {
 public:
  Bindings() {
    add_all(torch_attribute({"_C", "_VariableFunctions"}));
    add_all(torch_attribute({"_C", "TensorBase"}));
    add_all(torch_attribute({"_C", "_nn"}));
    add_all(torch_attribute({"_C", "_special"}));
    add_all(torch_attribute({"_C", "_linalg"}));
    add_all(torch_attribute({"_C", "_fft"}));
  }

  std::optional<std::string> find(PyObject* callable) const {
    const auto found = names_.find(callable);
    if (found == names_.end()) return std::nullopt;
    return found->second;
  }

 private:
  void add_all(const python::Object& holder) {
    if (!holder) return;
    const python::Object names = python::Object::steal(PyObject_Dir(holder.get()));
    for (Py_ssize_t i = 0; names && i < PyList_GET_SIZE(names.get()); ++i) {
      PyObject* name = PyList_GET_ITEM(names.get(), i);
      python::Object callable = python::Object::steal(PyObject_GetAttr(holder.get(), name));
      if (!callable) PyErr_Clear();
      if (callable && (PyCFunction_Check(callable.get()) || is_method(callable.get()))) {
        add(std::move(callable), PyUnicode_AsUTF8(name));
      }
    }
  }

  static bool is_method(PyObject* object) {
    return std::string_view(Py_TYPE(object)->tp_name) == "method_descriptor" ||
           std::string_view(Py_TYPE(object)->tp_name) == "wrapper_descriptor";
  }

  void add(python::Object callable, const std::string& name) {
    if (special_bindings().contains(name) || name.starts_with("__")) return;
    const std::string qualified = "aten::" + name;
    if (::torch::jit::getAllOperatorsFor(c10::Symbol::fromQualString(qualified)).empty()) return;
    names_[callable.get()] = qualified;
    alive_.push_back(std::move(callable));
  }

  std::map<PyObject*, std::string> names_;
  std::vector<python::Object> alive_;
};

/// The operators of `torch.ops`, ATen's and those that the program or a library registered.
class RegisteredOperators {
 public:
  RegisteredOperators()
      : packet_class_(torch_attribute({"_ops", "OpOverloadPacket"})),
        overload_class_(torch_attribute({"_ops", "OpOverload"})) {}

  std::optional<std::string> find(PyObject* callable) const {
    PyObject* type = reinterpret_cast<PyObject*>(Py_TYPE(callable));
    if (packet_class_.is(type)) return without_special(text(callable, "_qualified_op_name"));
    if (!overload_class_.is(type)) return std::nullopt;
    const std::string overload = text(callable, "_overloadname");
    std::string name = text(callable, "_name");
    if (!name.ends_with("." + overload)) name += "." + overload;
    return without_special(std::move(name));
  }

 private:
  static std::string text(PyObject* object, const char* attribute) {
    const python::Object found = python::Object::steal(PyObject_GetAttrString(object, attribute));
    if (!found) throw python::ErrorSet();
    return python::to_string(found.get());
  }

  static std::optional<std::string> without_special(std::string name) {
    constexpr std::string_view kOwn = "aten::";
    if (!name.starts_with(kOwn)) return name;
    const std::string own = name.substr(kOwn.size(), name.find('.') - kOwn.size());
    return special_bindings().contains(own) ? std::nullopt : std::optional(std::move(name));
  }

  python::Object packet_class_;
  python::Object overload_class_;
};

}  // namespace

std::optional<std::string> operator_name(PyObject* callable) {
  // Never destroyed: Python may be gone by then.
  static const Bindings& bindings = *new Bindings();
  static const RegisteredOperators& registered = *new RegisteredOperators();
  auto name = bindings.find(callable);
  return name ? name : registered.find(callable);
}

}  // namespace janus::torch
