#include "speculate/describe.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "speculate/tensor_access.h"

namespace janus::speculate {
namespace {

constexpr size_t kLongestText = 80;
constexpr int kDeepestText = 4;

bool has_plain_repr(PyObject* object) {
  return object == Py_None || object == Py_Ellipsis || PyBool_Check(object) ||
         PyLong_CheckExact(object) || PyFloat_CheckExact(object) || PyComplex_CheckExact(object) ||
         PyUnicode_CheckExact(object) || PyBytes_CheckExact(object);
}

std::string shortened(std::string text) {
  if (text.size() <= kLongestText) return text;
  text.resize(kLongestText);
  return text + "...";
}

std::string plain_repr(PyObject* object) {
  const python::Object repr = python::Object::steal(PyObject_Repr(object));
  if (!repr) {
    PyErr_Clear();  // an int with more digits than Python converts
    return cat("a very large ", Py_TYPE(object)->tp_name);
  }
  return shortened(text_of(repr.get()));
}

std::string describe_within(PyObject* object, int depth);

/// The elements as text. Parts deeper than `depth` are left out, since a sequence may contain
/// itself.
std::string describe_items(PyObject* sequence, const char* open, const char* close, int depth) {
  if (depth == 0) return cat(open, "...", close);
  const Py_ssize_t count = PySequence_Fast_GET_SIZE(sequence);
  std::string text = open;
  for (Py_ssize_t i = 0; i < count && text.size() < kLongestText; ++i)
    text +=
        cat(i == 0 ? "" : ", ", describe_within(PySequence_Fast_GET_ITEM(sequence, i), depth - 1));
  return shortened(text + close);
}

std::string describe_tensor(PyObject* object) {
  std::string why_not;
  const auto fact = tensor_access().describe(object, &why_not);
  if (!fact) return cat("a tensor (", why_not, ")");
  std::string text = cat(graph::name(fact->dtype), "[");
  for (size_t i = 0; i < fact->sizes.size(); ++i) text += cat(i == 0 ? "" : ",", fact->sizes[i]);
  return text + "]";
}

std::string short_type_name(PyTypeObject* type) {
  const char* dot = std::strrchr(type->tp_name, '.');
  return dot == nullptr ? type->tp_name : dot + 1;
}

bool equal_floats(double a, double b) { return std::memcmp(&a, &b, sizeof a) == 0; }

bool equal_tuples(PyObject* a, PyObject* b) {
  if (PyTuple_GET_SIZE(a) != PyTuple_GET_SIZE(b)) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(a); ++i)
    if (!equal_constants(PyTuple_GET_ITEM(a, i), PyTuple_GET_ITEM(b, i))) return false;
  return true;
}

bool equal_slices(PyObject* a, PyObject* b) {
  const auto* left = reinterpret_cast<PySliceObject*>(a);
  const auto* right = reinterpret_cast<PySliceObject*>(b);
  return equal_constants(left->start, right->start) && equal_constants(left->stop, right->stop) &&
         equal_constants(left->step, right->step);
}

}  // namespace

std::string text_of(PyObject* string) {
  const python::Object bytes =
      python::Object::steal(PyUnicode_AsEncodedString(string, "utf-8", "backslashreplace"));
  if (!bytes) {
    PyErr_Clear();
    return "?";
  }
  return std::string(PyBytes_AS_STRING(bytes.get()),
                     static_cast<size_t>(PyBytes_GET_SIZE(bytes.get())));
}

namespace {

std::string describe_within(PyObject* object, int depth) {
  if (object == nullptr) return "nothing";
  if (has_plain_repr(object)) return plain_repr(object);
  if (PyTuple_CheckExact(object)) return describe_items(object, "(", ")", depth);
  if (PyList_CheckExact(object)) return describe_items(object, "[", "]", depth);
  if (PyType_Check(object))
    return cat("the class ", short_type_name(reinterpret_cast<PyTypeObject*>(object)));
  if (PyFunction_Check(object))
    return cat("the function ",
               text_of(reinterpret_cast<PyFunctionObject*>(object)->func_qualname));
  if (PyCFunction_Check(object))
    return cat("the function ", reinterpret_cast<PyCFunctionObject*>(object)->m_ml->ml_name);
  if (PyMethod_Check(object))
    return cat("the method of ", describe_within(PyMethod_GET_SELF(object), depth));
  if (PyModule_Check(object)) {
    const char* name = PyModule_GetName(object);
    if (name == nullptr) PyErr_Clear();
    return cat("the module ", name == nullptr ? "?" : name);
  }
  if (PyCode_Check(object)) {
    const auto* code = reinterpret_cast<PyCodeObject*>(object);
    return cat("the code of ", text_of(code->co_qualname), " (line ", code->co_firstlineno, ")");
  }
  if (has_tensor_access() && tensor_access().is_tensor(object)) return describe_tensor(object);
  return cat("a ", short_type_name(Py_TYPE(object)), " object");
}

}  // namespace

std::string describe_object(PyObject* object) { return describe_within(object, kDeepestText); }

namespace {

std::string describe_strides(const std::vector<int64_t>& strides) {
  std::string text;
  for (const int64_t stride : strides) text += cat(text.empty() ? "" : ",", stride);
  return cat("(", text, ")");
}

/// Whether the tensor is contiguous.
bool are_contiguous(const TensorFact& fact) {
  int64_t expected = 1;
  for (size_t i = fact.sizes.size(); i-- > 0;) {
    if (fact.sizes[i] != 1 && fact.strides[i] != expected) return false;
    expected *= std::max<int64_t>(fact.sizes[i], 1);
  }
  return true;
}

}  // namespace

std::string describe_against(PyObject* object, const TensorPattern& pattern) {
  std::string why_not;
  if (!tensor_access().is_tensor(object)) return describe_object(object);
  const auto fact = tensor_access().describe(object, &why_not);
  if (!fact) return describe_object(object);
  std::vector<std::string> notes;
  const auto note = [&](bool is, bool assumed, const char* yes, const char* no) {
    if (is != assumed) notes.emplace_back(is ? yes : no);
  };
  if (!pattern.any_strides &&
      (pattern.strides ? *pattern.strides != fact->strides : !are_contiguous(*fact)))
    notes.push_back(cat("strides ", describe_strides(fact->strides), " instead of ",
                        pattern.strides ? describe_strides(*pattern.strides) : "contiguous ones"));
  note(fact->requires_grad, pattern.requires_grad, "requires grad", "does not require grad");
  note(fact->is_leaf, pattern.is_leaf, "is a leaf", "is not a leaf");
  note(fact->is_parameter, pattern.is_parameter, "is a Parameter", "is not a Parameter");
  note(fact->is_view && !pattern.may_be_view, false, "is a view", "");
  note(fact->has_hooks, pattern.has_hooks, "has hooks", "has no hooks");
  note(fact->accumulator_has_hooks && pattern.is_accumulated_into, false,
       "has a gradient accumulator with hooks", "");
  note(fact->accumulator_has_reducer || !pattern.is_reduced, true, "",
       "has a gradient accumulator with other hooks than a reducer's");
  std::string text = describe_object(object);
  for (size_t i = 0; i < notes.size(); ++i) text += cat(i == 0 ? " (" : ", ", notes[i]);
  return notes.empty() ? text : text + ")";
}

bool equal_constants(PyObject* a, PyObject* b) {
  if (a == b) return true;
  if (Py_TYPE(a) != Py_TYPE(b)) return false;
  if (PyFloat_CheckExact(a)) return equal_floats(PyFloat_AS_DOUBLE(a), PyFloat_AS_DOUBLE(b));
  if (PyTuple_CheckExact(a)) return equal_tuples(a, b);
  if (PySlice_Check(a)) return equal_slices(a, b);
  if (PyComplex_CheckExact(a)) {
    const Py_complex left = PyComplex_AsCComplex(a), right = PyComplex_AsCComplex(b);
    return equal_floats(left.real, right.real) && equal_floats(left.imag, right.imag);
  }
  if (PyLong_CheckExact(a) || PyUnicode_CheckExact(a) || PyBytes_CheckExact(a) ||
      PyRange_Check(a)) {
    const int equal = PyObject_RichCompareBool(a, b, Py_EQ);
    if (equal < 0) PyErr_Clear();
    return equal == 1;
  }
  return false;
}

}  // namespace janus::speculate
