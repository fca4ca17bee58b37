#include "frontend/control/entry_lists.h"

#include <algorithm>

#include "base/policy.h"
#include "frontend/core/heap.h"
#include "frontend/core/interpreter.h"
#include "frontend/core/operations.h"
#include "frontend/values/constants.h"
#include "frontend/values/strides.h"
#include "frontend/values/symbolic_list.h"
#include "python/integer.h"
#include "speculate/describe.h"

namespace janus::frontend {

using graph::Type;
using python::Object;
using speculate::ElementPart;
using speculate::ElementPattern;
using speculate::TensorFact;

TestKey entry_list_test(const Source* source) {
  const std::string name = cat("the length of ", source->describe());
  return {Object::steal(PyUnicode_InternFromString(name.c_str())), -1};
}

namespace {

bool is_contiguous(const TensorFact& fact) {
  const graph::Shape sizes(fact.sizes.begin(), fact.sizes.end());
  return are_contiguous(sizes, graph::Shape(fact.strides.begin(), fact.strides.end()));
}

/// Builds the pattern of one element; nothing if such elements are taken one by one.
class Describer {
 public:
  explicit Describer(Interpreter& interpreter) : interpreter_(interpreter) {}

  std::optional<ElementPattern> pattern(PyObject* element, const std::string& path) {
    ElementPattern made;
    if (speculate::tensor_access().is_tensor(element)) return tensor(element, path);
    if (PyTuple_CheckExact(element)) return tuple(element, path);
    if (PyBool_Check(element))
      made.kind = ElementPattern::Kind::boolean;
    else if (PyFloat_CheckExact(element))
      made.kind = ElementPattern::Kind::floating;
    else if (!PyLong_CheckExact(element) || !python::int64_of(element))
      return std::nullopt;
    return made;
  }

 private:
  std::optional<ElementPattern> tensor(PyObject* object, const std::string& path) {
    const auto fact = speculate::tensor_access().describe(object, nullptr);
    if (!fact || fact->is_parameter || fact->has_hooks || fact->requires_grad || !fact->is_leaf ||
        !is_contiguous(*fact))
      return std::nullopt;
    ElementPattern made;
    made.kind = ElementPattern::Kind::tensor;
    made.tensor.dtype = fact->dtype;
    made.tensor.may_be_view = true;
    const speculate::ValueFact* seen = interpreter_.path_fact(path);
    for (size_t i = 0; i < fact->sizes.size(); ++i) {
      const bool varies = fact->sizes[i] >= 2 && seen != nullptr && seen->varies(i);
      made.tensor.dims.push_back(varies ? interpreter_.entry_dimension(fact->sizes[i], seen, i)
                                        : graph::Dim(fact->sizes[i]));
    }
    return made;
  }

  std::optional<ElementPattern> tuple(PyObject* object, const std::string& path) {
    const Py_ssize_t size = PyTuple_GET_SIZE(object);
    if (size == 0 || size > policy::kMostTupleParts) return std::nullopt;
    ElementPattern made;
    made.kind = ElementPattern::Kind::tuple;
    for (Py_ssize_t i = 0; i < size; ++i) {
      auto part = pattern(PyTuple_GET_ITEM(object, i), cat(path, "[", i, "]"));
      if (!part) return std::nullopt;
      made.parts.push_back(std::move(*part));
    }
    return made;
  }

  Interpreter& interpreter_;
};

/// Whether the element is as that other one, for which the pattern was made.
bool is_alike(const ElementPattern& pattern, PyObject* element, PyObject* other) {
  if (Py_TYPE(element) != Py_TYPE(other)) return false;
  switch (pattern.kind) {
    case ElementPattern::Kind::integer:
      return python::int64_of(element).has_value();
    case ElementPattern::Kind::tuple:
      break;
    case ElementPattern::Kind::tensor: {
      const auto a = speculate::tensor_access().describe(element, nullptr);
      const auto b = speculate::tensor_access().describe(other, nullptr);
      return a && b && a->dtype == b->dtype && a->sizes == b->sizes && a->strides == b->strides &&
             a->requires_grad == b->requires_grad && a->is_leaf == b->is_leaf &&
             a->is_parameter == b->is_parameter && a->has_hooks == b->has_hooks;
    }
    default:
      return true;
  }
  if (PyTuple_GET_SIZE(element) != PyTuple_GET_SIZE(other)) return false;
  for (size_t i = 0; i < pattern.parts.size(); ++i) {
    const auto at = static_cast<Py_ssize_t>(i);
    if (!is_alike(pattern.parts[i], PyTuple_GET_ITEM(element, at), PyTuple_GET_ITEM(other, at)))
      return false;
  }
  return true;
}

/// What all elements match.
std::optional<ElementPattern> pattern_of(Interpreter& interpreter, PyObject* list,
                                         const Source* source) {
  PyObject* first = PySequence_Fast_GET_ITEM(list, 0);
  auto pattern = Describer(interpreter).pattern(first, speculate::element_text(source->describe()));
  if (!pattern) return std::nullopt;
  for (Py_ssize_t i = 1; i < PySequence_Fast_GET_SIZE(list); ++i)
    if (!is_alike(*pattern, PySequence_Fast_GET_ITEM(list, i), first)) return std::nullopt;
  return pattern;
}

ElementForm form_of(const ElementPattern& pattern) {
  ElementForm form;
  switch (pattern.kind) {
    case ElementPattern::Kind::integer:
      form.type = Type::i64();
      break;
    case ElementPattern::Kind::floating:
      form.type = Type::f64();
      break;
    case ElementPattern::Kind::boolean:
      form.type = Type::boolean();
      break;
    case ElementPattern::Kind::tensor:
      form.kind = ElementForm::Kind::tensor;
      form.type = Type::tensor(pattern.tensor.dtype, pattern.tensor.dims);
      break;
    case ElementPattern::Kind::tuple:
      form.kind = ElementForm::Kind::tuple;
      for (const ElementPattern& part : pattern.parts) form.parts.push_back(form_of(part));
  }
  return form;
}

/// Whether the list is one whose length the graph leaves open.
bool has_varied(Interpreter& interpreter, const Known& known) {
  PyObject* object = known.object.get();
  if (known.source == nullptr || is_immutable_constant(object) || !interpreter.merges() ||
      (!PyList_CheckExact(object) && !PyTuple_CheckExact(object)) ||
      PySequence_Fast_GET_SIZE(object) < 2)
    return false;
  const auto* seen = interpreter.path_fact(speculate::length_text(known.source->describe()));
  return seen != nullptr && seen->level() > speculate::ValueFact::Level::value &&
         interpreter.followed(entry_list_test(known.source)) == nullptr;
}

std::shared_ptr<const Rolled> list_of_graph(Interpreter& interpreter, const Known& known,
                                            const ElementPattern& pattern,
                                            const graph::Dim& length) {
  auto list = std::make_shared<Rolled>();
  list->test = entry_list_test(known.source);
  list->form = form_of(pattern);
  list->length = interpreter.dimension(length);
  interpreter.give_dimension(length,
                             interpreter.sources().step(Source::Kind::length, known.source));
  list->memory = std::make_shared<Tensor>();
  for_each_leaf(pattern, [&](const ElementPattern& leaf, const ElementPart& part) {
    // Its tensors are objects of the program: they are neither written nor handed on.
    if (leaf.kind == ElementPattern::Kind::tensor)
      list->memory->is_borrowed = list->memory->uncertain_alias = true;
    const Type type = form_of(leaf).type;
    list->lists.push_back(interpreter.list_input(known.source, type, part));
    const Source* first = interpreter.sources().step(Source::Kind::index, known.source, {}, 0);
    for (const size_t index : part)
      first = interpreter.sources().step(Source::Kind::index, first, {},
                                         static_cast<Py_ssize_t>(index));
    interpreter.give_dimensions(type, first);
  });
  return list;
}

}  // namespace

std::shared_ptr<const Rolled> varying_list(Interpreter& interpreter, const Known& known) {
  if (auto found = interpreter.entry_lists.find(known.source);
      found != interpreter.entry_lists.end())
    return found->second.elements;
  if (!has_varied(interpreter, known)) return nullptr;
  PyObject* object = known.object.get();
  if (const Heap::List* changed = interpreter.heap.list(object, known.source);
      changed != nullptr && changed->shadow == nullptr)
    return nullptr;
  auto pattern = pattern_of(interpreter, object, known.source);
  if (!pattern) return nullptr;
  const graph::Dim length = interpreter.entry_dimension(PySequence_Fast_GET_SIZE(object));
  Assumption assumption;
  assumption.kind = Assumption::Kind::elements;
  assumption.source = known.source;
  assumption.symbol = graph::to_string(length);
  auto shared = std::make_shared<const ElementPattern>(std::move(*pattern));
  assumption.elements = shared;
  interpreter.assume(std::move(assumption));
  auto elements = list_of_graph(interpreter, known, *shared, length);
  interpreter.entry_lists[known.source] = {known.object, shared, elements};
  return elements;
}

Value opened_if_varying(Interpreter& interpreter, const Value& value) {
  const auto* known = as<Known>(value);
  const bool varies = known != nullptr && varying_list(interpreter, *known) != nullptr;
  return varies ? opened(interpreter, value) : value;
}

}  // namespace janus::frontend
