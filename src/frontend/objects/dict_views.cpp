// A view is made anew where its dict has changed since.
#include "frontend/objects/dict_views.h"

#include <algorithm>

#include "frontend/core/class_of.h"
#include "frontend/core/exceptions.h"
#include "frontend/values/make.h"

namespace janus::frontend {

using python::Object;
using syntax::CompareOperator;

namespace {

constexpr const char* kValues = "values";

/// Whether the elements are what the dict holds.
bool is_current(const Sequence& view) {
  const auto is_shown = [&](const Value& element, const std::pair<Object, Value>& item) {
    if (view.part == kValues) return element == item.second;
    if (view.part == "keys") return known_object(element) == item.first.get();
    const auto& pair = as<Sequence>(element)->elements;
    return known_object(pair[0]) == item.first.get() && pair[1] == item.second;
  };
  const std::vector<Value>& elements = view.elements.known();
  return std::equal(elements.begin(), elements.end(), view.viewed->items.begin(),
                    view.viewed->items.end(), is_shown);
}

bool is_class_of_views(PyTypeObject* type) {
  return PyType_IsSubtype(type, &PyDictKeys_Type) != 0 ||
         PyType_IsSubtype(type, &PyDictItems_Type) != 0 ||
         PyType_IsSubtype(type, &PyDictValues_Type) != 0;
}

}  // namespace

Value view_of(ValueMaker& maker, const std::shared_ptr<Dictionary>& dictionary,
              const std::string& part) {
  auto view = std::make_shared<Sequence>(false);
  for (const auto& item : dictionary->items)
    view->elements.push_back(dictionary_part(maker, item, part));
  view->viewed = dictionary;
  view->part = part;
  return view;
}

Value dictionary_part(ValueMaker& maker, const std::pair<Object, Value>& item,
                      const std::string& part) {
  if (part == "values") return item.second;
  Value key = maker.constant(item.first);
  return part == "keys" ? key : make_tuple({key, item.second});
}

bool is_view(const Value& value) {
  const auto* sequence = as<Sequence>(value);
  return sequence != nullptr && sequence->viewed != nullptr;
}

bool is_set_view(const Value& value) {
  return is_view(value) && as<Sequence>(value)->part != kValues;
}

Value refreshed(ValueMaker& maker, const Value& value) {
  if (!is_view(value)) return value;
  const auto& view = *as<Sequence>(value);
  return is_current(view) ? value : view_of(maker, view.viewed, view.part);
}

bool may_be_one_view(const Value& left, const Value& right) {
  if (left == right || !is_view(left) || !is_view(right)) return false;
  const auto *first = as<Sequence>(left), *second = as<Sequence>(right);
  return first->viewed == second->viewed && first->part == second->part;
}

Value compare_views(Interpreter& interpreter, CompareOperator op, const Value& left,
                    const Value& right) {
  if (!is_view(left) && !is_view(right)) return nullptr;
  // The other operand may have a method of its own, or be a view that existed before the call.
  for (const Value& operand : {left, right})
    if (PyTypeObject* const type = class_of(operand);
        type == nullptr || (type->tp_flags & Py_TPFLAGS_HEAPTYPE) != 0 ||
        (as<Known>(operand) != nullptr && is_class_of_views(type)))
      interpreter.refuse(ReasonCode::expression, "the comparison of a view with an object");
  if (op != CompareOperator::Eq && op != CompareOperator::NotEq)
    raise(interpreter, PyExc_TypeError, "TypeError: views that have no order");
  if (may_be_one_view(left, right))
    interpreter.refuse(ReasonCode::expression, "whether two views are one object");
  return interpreter.boolean((left == right) == (op == CompareOperator::Eq));
}

}  // namespace janus::frontend
