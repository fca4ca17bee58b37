#include "speculate/recipe.h"

#include "base/check.h"
#include "execute/values/container.h"
#include "python/classes.h"
#include "speculate/describe.h"
#include "speculate/tensor_access.h"

namespace janus::speculate {
namespace {

using Kind = Template::Kind;

python::Object tuple_of(std::span<const python::Object> parts) {
  const auto count = static_cast<Py_ssize_t>(parts.size());
  python::Object made = python::check(PyTuple_New(count));
  for (Py_ssize_t i = 0; i < count; ++i)
    PyTuple_SET_ITEM(made.get(), i, python::Object(parts[static_cast<size_t>(i)]).release());
  return made;
}

python::Object set_of(std::span<const python::Object> parts) {
  python::Object made = python::check(PySet_New(nullptr));
  for (const python::Object& part : parts) python::check_status(PySet_Add(made.get(), part.get()));
  return made;
}

python::Object slice_of(std::span<const python::Object> parts) {
  TORCHJANUS_CHECK(parts.size() == 3, "recipe: a slice of ", parts.size(), " parts");
  return python::check(PySlice_New(parts[0].get(), parts[1].get(), parts[2].get()));
}

}  // namespace

PyObject* unbound_marker() {
  static PyObject* marker = PyObject_CallNoArgs(reinterpret_cast<PyObject*>(&PyBaseObject_Type));
  return marker;
}

PyObject* untouched_marker() {
  static PyObject* marker = PyObject_CallNoArgs(reinterpret_cast<PyObject*>(&PyBaseObject_Type));
  return marker;
}

namespace {

python::Object list_object(execute::Slot list) {
  auto size = static_cast<Py_ssize_t>(execute::list_size(list));
  python::Object made = python::check(PyList_New(size));
  for (Py_ssize_t i = size; i-- > 0; list = execute::without_last(list)) {
    execute::Slot item = execute::last_item(list);
    PyList_SET_ITEM(made.get(), i, to_object(item).release());
  }
  return made;
}

}  // namespace

python::Object to_object(execute::Slot& slot) {
  using SlotKind = execute::Slot::Kind;
  switch (slot.kind()) {
    case SlotKind::none:
      return python::Object::borrow(Py_None);
    case SlotKind::boolean:
      return python::Object::borrow(slot.boolean() ? Py_True : Py_False);
    case SlotKind::i64:
      return python::check(PyLong_FromLongLong(slot.i64()));
    case SlotKind::f64:
      return python::check(PyFloat_FromDouble(slot.f64()));
    case SlotKind::tensor: {
      python::Object object = tensor_access().to_python(std::move(slot));
      slot = execute::Slot::borrow_object(object.get());
      return object;
    }
    case SlotKind::container:
      return list_object(slot);
    case SlotKind::object:
      return python::Object::borrow(static_cast<PyObject*>(slot.object()));
    default:
      break;
  }
  throw InternalError("recipe: a result of the graph is not a Python object");
}

Recipe::Recipe(const Template& form, const Capture& capture)
    : kind_(form.kind), object_(form.object), index_(form.index), place_(form.place) {
  if (kind_ == Kind::source) index_ = capture(form.source);
  for (const Template& child : form.children) children_.emplace_back(child, capture);
  if (form.keyword_names.empty()) return;
  std::vector<python::Object> names;
  for (const std::string& name : form.keyword_names) names.push_back(python::string(name));
  keyword_names_ = tuple_of(names);
}

python::Object Recipe::build(std::span<const python::Object> captured,
                             std::span<execute::Slot> results, Made& made) const {
  return build({captured, results, made, {}});
}

python::Object Recipe::build(const Given& given) const {
  Made& made = given.made;
  if (kind_ == Kind::shared) {
    TORCHJANUS_CHECK(index_ < made.size() && made[index_], "recipe: part ", index_,
                     " is shared before it is made");
    return made[index_];
  }
  const auto remember = [&](const python::Object& object) {
    if (place_ == Template::kNoPlace) return;
    if (place_ >= made.size()) made.resize(place_ + 1);
    made[place_] = object;
  };
  python::Object object = build_shell();
  if (object) {
    // The object exists before its parts, which may refer to it.
    remember(object);
    fill(object.get(), build_children(given));
    return object;
  }
  object = build_parts(given);
  remember(object);
  return object;
}

namespace {

/// Sets the item by the C class's method, past overrides of the program's classes.
int set_own_item(PyObject* dict, PyObject* key, PyObject* value) {
  return python::class_in_c(Py_TYPE(dict))->tp_as_mapping->mp_ass_subscript(dict, key, value);
}

/// Appends the elements to an object whose class is derived from list, past its overrides.
int add_elements(PyObject* object, PyObject* elements) {
  const Py_ssize_t length = PyList_GET_SIZE(object);
  return PyList_SetSlice(object, length, length, elements);
}

}  // namespace

python::Object Recipe::build_shell() const {
  switch (kind_) {
    case Kind::list:
      return python::check(PyList_New(0));
    case Kind::dict:
      return python::check(PyDict_New());
    case Kind::instance: {
      static PyObject* const nothing = PyTuple_New(0);
      auto* type = reinterpret_cast<PyTypeObject*>(object_.get());
      return python::check(python::class_in_c(type)->tp_new(type, nothing, nullptr));
    }
    default:
      return {};
  }
}

void Recipe::fill(PyObject* shell, std::span<const python::Object> parts) const {
  if (kind_ == Kind::list) {
    for (const python::Object& part : parts) python::check_status(PyList_Append(shell, part.get()));
    return;
  }
  const size_t attributes = kind_ == Kind::dict ? 0 : index_;
  for (size_t i = 0; i + 1 < parts.size(); i += 2) {
    PyObject* key = parts[i].get();
    PyObject* value = parts[i + 1].get();
    if (i < attributes)
      python::check_status(PyObject_GenericSetAttr(shell, key, value));
    else
      python::check_status(kind_ == Kind::dict ? PyDict_SetItem(shell, key, value)
                                               : set_own_item(shell, key, value));
  }
  if (parts.size() % 2 != 0) python::check_status(add_elements(shell, parts.back().get()));
}

std::vector<python::Object> Recipe::build_children(const Given& given) const {
  std::vector<python::Object> parts;
  parts.reserve(children_.size());
  for (const Recipe& child : children_) parts.push_back(child.build(given));
  return parts;
}

python::Object Recipe::build_parts(const Given& given) const {
  switch (kind_) {
    case Kind::constant:
      return object_;
    case Kind::source:
      return given.captured[index_];
    case Kind::result:
      TORCHJANUS_CHECK(index_ < given.results.size(), "recipe: no result ", index_);
      return to_object(given.results[index_]);
    case Kind::item:
      TORCHJANUS_CHECK(index_ < given.items.size(), "recipe: no item ", index_);
      return given.items[index_];
    case Kind::unbound:
      return python::Object::borrow(unbound_marker());
    case Kind::each:
      return build_each(given);
    case Kind::replay:
      replay(given);
      return python::Object::borrow(Py_None);
    default:
      break;
  }
  const std::vector<python::Object> parts = build_children(given);
  switch (kind_) {
    case Kind::tuple:
      return tuple_of(parts);
    case Kind::set:
      return set_of(parts);
    case Kind::slice:
      return slice_of(parts);
    default:
      return make_call(parts);
  }
}

std::vector<python::Object> Recipe::build_lists(const Given& given) const {
  std::vector<python::Object> lists;
  for (size_t i = 1; i < children_.size(); ++i) lists.push_back(children_[i].build(given));
  return lists;
}

python::Object Recipe::build_at(const Given& given, std::span<const python::Object> lists,
                                Py_ssize_t position) const {
  std::vector<python::Object> items;
  for (const python::Object& list : lists)
    items.push_back(python::check(PySequence_GetItem(list.get(), position)));
  return children_.front().build({given.captured, given.results, given.made, items});
}

python::Object Recipe::build_each(const Given& given) const {
  const std::vector<python::Object> lists = build_lists(given);
  python::Object made = python::check(PyList_New(0));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(lists.front().get()); ++i)
    python::check_status(PyList_Append(made.get(), build_at(given, lists, i).get()));
  return made;
}

void Recipe::replay(const Given& given) const {
  const python::Object order = children_.front().build(given);
  std::vector<std::vector<python::Object>> lists;
  for (size_t i = 1; i < children_.size(); ++i) lists.push_back(children_[i].build_lists(given));
  std::vector<Py_ssize_t> positions(lists.size(), 0);
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(order.get()); ++i) {
    const size_t which = PyLong_AsSize_t(PyList_GET_ITEM(order.get(), i));
    TORCHJANUS_CHECK(which < lists.size(), "recipe: no part ", which, " to replay");
    children_[which + 1].build_at(given, lists[which], positions[which]++);
  }
}

python::Object Recipe::make_call(std::span<const python::Object> parts) const {
  std::vector<PyObject*> arguments;
  for (const python::Object& part : parts) arguments.push_back(part.get());
  const size_t named =
      keyword_names_ ? static_cast<size_t>(PyTuple_GET_SIZE(keyword_names_.get())) : 0;
  return python::check(PyObject_Vectorcall(object_.get(), arguments.data(),
                                           arguments.size() - named, keyword_names_.get()));
}

}  // namespace janus::speculate
