#include "frontend/autograd/tensor_properties.h"

#include "frontend/autograd/grad_attribute.h"
#include "frontend/autograd/gradient_flags.h"
#include "frontend/core/interpreter.h"
#include "frontend/core/known_callables.h"
#include "frontend/core/torch_objects.h"
#include "frontend/tensors/callables.h"
#include "frontend/tensors/tensor.h"
#include "frontend/tensors/tensor_data.h"
#include "frontend/values/make.h"

namespace janus::frontend {

using python::Object;

namespace {

/// torch.device("cpu"): every tensor of a graph lives there.
PyObject* cpu_device() {
  static PyObject* const device = [] {
    PyObject* type = imported("torch.device");
    return PyObject_CallFunction(type, "s", "cpu");
  }();
  return device;
}

/// Of every rank: `x.T` of a vector is a new tensor too.
Value transposed(Interpreter& interpreter, const std::shared_ptr<Tensor>& tensor) {
  CallArguments arguments;
  std::vector<Value> dims;
  for (int64_t i = tensor->value->type.rank(); i-- > 0;) dims.push_back(interpreter.integer(i));
  arguments.positional = {tensor, make_tuple(std::move(dims))};
  return call_named(interpreter, "Tensor.permute", arguments);
}

Value matrix_transposed(Interpreter& interpreter, const std::shared_ptr<Tensor>& tensor) {
  CallArguments arguments;
  arguments.positional = {tensor, interpreter.integer(-2), interpreter.integer(-1)};
  return call_named(interpreter, "Tensor.transpose", arguments);
}

/// While a hook runs, only its own leaf's gradient is known to be there, or not yet.
void check_grad_is_known(const Interpreter& interpreter, const Tensor& tensor) {
  if (interpreter.hook_of != nullptr && interpreter.hook_of != &tensor)
    interpreter.refuse(ReasonCode::hook, "a leaf (it looks at the gradient of another)");
}

/// What its base requires, a view that was taken without gradients does as well.
Value requires_grad_of(Interpreter& interpreter, const Tensor& tensor) {
  if (is_leaf_view(tensor)) {
    const Tensor* base = viewed_by(tensor).get();
    while (!base->requires_grad) base = viewed_by(*base).get();
    return interpreter.boolean(shows_gradient(interpreter, *base));
  }
  if (graph::Value* flag = gradient_flag(interpreter, tensor)) return interpreter.number(flag);
  return interpreter.boolean(tensor.requires_grad);
}

/// The real or imaginary parts: a view, made as torch makes it.
Value part_of_complex(Interpreter& interpreter, const Value& tensor, int64_t part) {
  static PyObject* const view_as_real = imported("torch.view_as_real");
  CallArguments whole, selected;
  whole.positional = {tensor};
  const Value numbers = call_operator(interpreter, view_as_real, whole);
  if (numbers == nullptr) return nullptr;
  selected.positional = {numbers, interpreter.integer(-1), interpreter.integer(part)};
  return call_named(interpreter, "Tensor.select", selected);
}

}  // namespace

Value tensor_property(Interpreter& interpreter, const std::shared_ptr<Tensor>& tensor,
                      const std::string& name) {
  const graph::Type& type = tensor->value->type;
  if (name == "shape") return size_of(interpreter, *tensor);
  if (name == "dtype") return interpreter.constant(dtype_object(type.dtype));
  if (name == "device") return interpreter.constant_borrowed(cpu_device());
  if (name == "ndim") return interpreter.integer(type.rank());
  if (name == "requires_grad") return requires_grad_of(interpreter, *tensor);
  if (name == "is_leaf" || name == "grad_fn") shows_gradient(interpreter, *tensor);
  if (name == "is_leaf") return interpreter.boolean(tensor->is_leaf);
  if (name == "data") return data_of(interpreter, tensor);
  if (name == "grad" && interpreter.without_grad.contains(tensor.get())) return interpreter.none();
  if (name == "grad") {
    if (is_leaf_view(*tensor))
      interpreter.refuse(ReasonCode::autograd, "the .grad of a view taken without gradients");
    check_grad_is_known(interpreter, *tensor);
    Value grad = read_grad(interpreter, tensor);
    const auto* optional = as<Optional>(grad);
    return optional != nullptr && interpreter.sees_all_grads ? optional->value : grad;
  }
  if (name == "grad_fn" && !tensor->requires_grad) return interpreter.none();
  if (name == "grad_fn" && tensor->is_leaf) return interpreter.none();
  if (name == "itemsize") return interpreter.integer(graph::byte_size(type.dtype));
  if (name == "layout") {
    static PyObject* const strided = imported("torch.strided");
    return interpreter.constant_borrowed(strided);
  }
  if (name == "is_cpu") return interpreter.boolean(true);
  const bool is_real = !graph::is_complex(type.dtype);
  if (is_real && (name == "mH" || (name == "H" && type.rank() == 2)))
    return matrix_transposed(interpreter, tensor);
  if (is_real && name == "real") return tensor;
  if (!is_real && (name == "real" || name == "imag"))
    return part_of_complex(interpreter, tensor, name == "real" ? 0 : 1);
  if (name == "nbytes")
    return interpreter.dimension(graph::element_count(type.shape) * graph::byte_size(type.dtype));
  if (name == "T") return transposed(interpreter, tensor);
  if (name == "mT") return matrix_transposed(interpreter, tensor);
  for (const char* never :
       {"is_cuda", "is_sparse", "is_quantized", "is_meta", "is_nested", "is_mkldnn", "is_mps",
        "is_xpu", "is_sparse_csr", "is_mtia", "is_xla", "is_vulkan", "is_ipu", "is_maia"})
    if (name == never) return interpreter.boolean(false);
  return nullptr;
}

bool write_tensor_property(Interpreter& interpreter, const std::shared_ptr<Tensor>& tensor,
                           const std::string& name, const Value& value) {
  if (name == "grad") {
    check_grad_is_known(interpreter, *tensor);
    write_grad(interpreter, tensor, value);
  } else if (name == "requires_grad") {
    CallArguments arguments;
    arguments.positional = {tensor, value};
    static const Handler setter = handler_named("torch.Tensor.requires_grad_");
    setter(interpreter, arguments);
  } else if (name == "data") {
    replace_data(interpreter, tensor, value);
  } else {
    return false;
  }
  interpreter.heap.note_change();  // a generator may read what was written between two elements
  return true;
}

}  // namespace janus::frontend
