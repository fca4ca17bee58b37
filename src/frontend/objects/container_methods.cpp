// Finds the method by the kind of container. A container that existed before the call is opened
// only for methods that look at all it holds.
#include "frontend/objects/container_methods.h"

#include <set>

#include "frontend/control/symbolic_lists.h"
#include "frontend/core/class_entry.h"
#include "frontend/core/class_of.h"
#include "frontend/core/keys.h"
#include "frontend/core/operations.h"
#include "frontend/core/torch_objects.h"
#include "frontend/objects/attributes.h"
#include "frontend/objects/container_classes.h"
#include "frontend/objects/dict_views.h"
#include "frontend/objects/dicts.h"
#include "frontend/objects/entry_containers.h"
#include "frontend/objects/folding.h"
#include "frontend/objects/iteration.h"
#include "frontend/objects/lengths.h"
#include "frontend/objects/list_methods.h"
#include "frontend/objects/lists.h"
#include "frontend/objects/membership.h"
#include "frontend/objects/set_methods.h"
#include "frontend/objects/subscripts.h"
#include "frontend/values/constants.h"
#include "python/version.h"

namespace janus::frontend {

namespace {

/// Methods of a pre-existing container that do not look at all it holds.
Value unopened_method(const Value& self, const std::string& name) {
  const auto& known = *as<Known>(self);
  PyObject* object = known.object.get();
  const bool grows = PyList_CheckExact(object) || is_deque(object);
  if (PyAnySet_CheckExact(object) && known.source != nullptr) return real_set_method(self, name);
  if (grows && known.source != nullptr && (name == "append" || name == "extend"))
    return std::make_shared<Native>(
        "list." + name, [self, name](Interpreter& inner, const CallArguments& arguments) -> Value {
          expect_count(inner, arguments, 1, 1);
          const Value& argument = arguments.positional[0];
          if (name == "append") return grow_list(inner, *as<Known>(self), argument);
          for_each_element(inner, argument, [&](const Value& element) {
            grow_list(inner, *as<Known>(self), element);
          });
          return inner.none();
        });
  return real_dict_method(self, name);
}

/// A method of a view of a dict; null: it has none of that name.
Value view_method(const Frames& frames, const std::shared_ptr<Sequence>& view,
                  const std::string& name) {
  if (name == "isdisjoint" && is_set_view(view))
    return std::make_shared<Native>(
        "view.isdisjoint", [view](Interpreter& inner, const CallArguments& arguments) -> Value {
          expect_count(inner, arguments, 1, 1);
          const Value common =
              set_binary(inner, syntax::Operator::BitAnd, view, arguments.positional[0]);
          if (common == nullptr) inner.refuse(ReasonCode::expression, "isdisjoint() of a view");
          return inner.boolean(as<SetValue>(common)->elements.empty());
        });
  PyTypeObject* const type = class_of(Value(view));
  if (PyDict_GetItemString(python::class_dict(type), name.c_str()) != nullptr)
    frames.refuse(ReasonCode::expression, cat("the method ", name, " of a view"));
  return nullptr;
}

}  // namespace

void repeat_list(Interpreter& interpreter, const std::shared_ptr<Sequence>& list,
                 const Value& times) {
  const Value repeated = binary(interpreter, syntax::Operator::Mult, list, times);
  list->elements = as<Sequence>(repeated)->elements;
  note_list_change(interpreter, *list);
}

Value container_method(const Frames& frames, const Value& self, const std::string& name) {
  // A Counter has methods of its own for some of a dict's.
  if (PyTypeObject* type = class_of(self); is_counter(type))
    if (PyDict_GetItemString(python::class_dict(type), name.c_str()) != nullptr) return nullptr;
  return builtin_method(frames, self, name);
}

Value builtin_method(const Frames& frames, const Value& self, const std::string& name) {
  if (as<Known>(self) != nullptr) return unopened_method(self, name);
  if (auto sequence = shared_as<Sequence>(self))
    return is_view(self) ? view_method(frames, sequence, name) : sequence_method(sequence, name);
  if (auto dictionary = shared_as<Dictionary>(self)) return dict_method(dictionary, name);
  if (auto set = shared_as<SetValue>(self)) return set_method(set, name);
  return nullptr;
}

namespace {

bool is_container_class(PyTypeObject* type) {
  static auto* const deque = reinterpret_cast<PyTypeObject*>(imported("collections.deque"));
  return type == &PyList_Type || type == &PyDict_Type || type == &PySet_Type ||
         type == &PyFrozenSet_Type || type == &PyTuple_Type || type == deque ||
         type == ordered_dict_type();
}

/// Whether a dict's own method changes an object made in the run, whose class is derived from dict
/// or OrderedDict, and asks no method of the object's in turn.
bool changes_items_alone(const Dictionary& items, PyObject* method, const std::string& name,
                         const CallArguments& arguments) {
  static const std::set<std::string_view> of_dict = {"update",  "setdefault", "pop",
                                                     "popitem", "clear",      "__init__"};
  const bool is_ordered = static_cast<bool>(items.type);
  // dict's own `__setitem__` would put an item past the order that an OrderedDict keeps.
  if (name == "__setitem__" || name == "__delitem__")
    return !is_ordered || PyDescr_TYPE(method) == ordered_dict_type();
  if (!is_ordered) return of_dict.contains(name);
  // All else of an OrderedDict's goes by `__setitem__`.
  return name == "__init__" && arguments.positional.size() == 1 && arguments.keywords.empty();
}

/// What an object holds whose class is derived from dict or list, for a method that is called as
/// `dict.method(object)`. A dict that existed before the call is only read. Null for others.
Value items_for_method(Interpreter& interpreter, PyObject* method, const std::string& name,
                       const CallArguments& arguments) {
  static const std::set<std::string_view> reading = {
      "get", "keys", "values", "items", "__getitem__", "__contains__", "__len__", "__iter__"};
  const Value& self = arguments.positional[0];
  if (PyDescr_TYPE(method) == &PyList_Type) return held_elements(interpreter, self);
  if (name == "__getitem__" && special_method(interpreter, self, "__missing__") != nullptr)
    return nullptr;
  const auto* instance = as<Instance>(self);
  if (instance == nullptr) return reading.contains(name) ? held_items(interpreter, self) : nullptr;
  if (instance->items == nullptr) return nullptr;
  const bool fits =
      reading.contains(name) || changes_items_alone(*instance->items, method, name, arguments);
  return fits ? instance->items : nullptr;
}

/// Whether an operator of a list may be asked before one of the other operand: that is a tuple, or
/// a list whose class has no `__radd__`.
bool comes_first(Interpreter& interpreter, const Value& other) {
  PyTypeObject* const type = class_of(other);
  if (type == &PyTuple_Type || type == &PyList_Type) return true;
  return is_list_class(type) && class_entry(interpreter, type, "__radd__") == nullptr;
}

/// list + other, which goes by what both hold; null if the other is no list.
Value joined_lists(Interpreter& interpreter, const Value& list, const Value& other) {
  const Value held = list_contents(interpreter, other);
  return held == nullptr ? nullptr : binary(interpreter, syntax::Operator::Add, list, held);
}

Value extend_list(Interpreter& interpreter, const Value& list, const Value& other) {
  return call(interpreter, builtin_method(interpreter, list, "extend"),
              {.positional = {other}, .keywords = {}});
}

/// An operator of `self`, which holds the list; null if the method is none.
Value call_list_operator(Interpreter& interpreter, const std::string& name, const Value& self,
                         const std::shared_ptr<Sequence>& list, const Value& other) {
  if (name == "__mul__" || name == "__rmul__" || name == "__imul__") {
    if (class_of(other) != &PyLong_Type) return nullptr;
    if (name != "__imul__") return binary(interpreter, syntax::Operator::Mult, list, other);
    repeat_list(interpreter, list, other);
    return self;
  }
  if ((name != "__add__" && name != "__iadd__") || !comes_first(interpreter, other)) return nullptr;
  if (name == "__add__") return joined_lists(interpreter, list, other);
  extend_list(interpreter, list, other);
  return self;
}

/// list.__init__: the elements that it had before are gone.
Value fill_list(Interpreter& interpreter, const Value& list, const CallArguments& arguments) {
  expect_count(interpreter, arguments, 1, 2);
  call(interpreter, builtin_method(interpreter, list, "clear"), {});
  if (arguments.positional.size() > 1) extend_list(interpreter, list, arguments.positional[1]);
  return interpreter.none();
}

Value call_special(Interpreter& interpreter, const std::string& name,
                   const CallArguments& arguments) {
  const auto& given = arguments.positional;
  if (name == "__getitem__" && given.size() == 2) return subscript(interpreter, given[0], given[1]);
  if (name == "__contains__" && given.size() == 2)
    return interpreter.boolean(contains(interpreter, given[0], given[1]));
  if (name == "__len__" && given.size() == 1) return length_of(interpreter, given[0]);
  if (name == "__iter__" && given.size() == 1) return iterate(interpreter, given[0]);
  if (name == "__setitem__" && given.size() == 3) {
    write_subscript(interpreter, given[0], given[1], given[2]);
    return interpreter.none();
  }
  if (name == "__init__" && as<Dictionary>(given[0]) != nullptr) {
    CallArguments items = arguments;
    items.positional.erase(items.positional.begin());
    update_dict(interpreter, given[0], items);
    return interpreter.none();
  }
  if (name == "__init__" && as<Sequence>(given[0]) != nullptr)
    return fill_list(interpreter, given[0], arguments);
  if (name == "__reversed__" && given.size() == 1 && as<Sequence>(given[0]) != nullptr)
    return call(interpreter, interpreter.constant_borrowed(imported("builtins.reversed")),
                arguments);
  if (name == "__delitem__" && given.size() == 2) {
    delete_subscript(interpreter, given[0], given[1]);
    return interpreter.none();
  }
  return nullptr;
}

/// itertools.chain.from_iterable(iterables)
Value chained(Interpreter& interpreter, const Value& iterables) {
  const auto rest = std::make_shared<std::shared_ptr<Iterator>>(iterate(interpreter, iterables));
  const auto current = std::make_shared<std::shared_ptr<Iterator>>();
  return std::make_shared<Iterator>([&interpreter, rest, current]() -> Value {
    while (*rest != nullptr) {
      if (*current != nullptr)
        if (Value element = (*current)->next()) return element;
      const Value next = (*rest)->next();
      if (next == nullptr)
        rest->reset();
      else
        *current = iterate(interpreter, next);
    }
    return nullptr;
  });
}

/// dict.fromkeys(keys, value)
Value dict_from_keys(Interpreter& interpreter, const CallArguments& arguments) {
  expect_count(interpreter, arguments, 1, 2);
  auto dictionary = std::make_shared<Dictionary>();
  Value value = arguments.positional.size() > 1 ? arguments.positional[1] : interpreter.none();
  for (const Value& key : elements_of(interpreter, arguments.positional[0]))
    change_item(interpreter, *dictionary, key_object(interpreter, key), value);
  return dictionary;
}

}  // namespace

Value call_container_function(Interpreter& interpreter, PyObject* callable,
                              const CallArguments& arguments) {
  if (PyCFunction_Check(callable)) {
    static PyObject* const chain = imported("itertools.chain");
    if (PyCFunction_GET_SELF(callable) == chain && arguments.positional.size() == 1)
      return chained(interpreter, arguments.positional[0]);
    const bool of_dict =
        PyCFunction_GET_SELF(callable) == reinterpret_cast<PyObject*>(&PyDict_Type);
    const std::string_view name = reinterpret_cast<PyCFunctionObject*>(callable)->m_ml->ml_name;
    return of_dict && name == "fromkeys" ? dict_from_keys(interpreter, arguments) : nullptr;
  }
  const bool is_method = Py_TYPE(callable) == &PyMethodDescr_Type;
  if ((!is_method && Py_TYPE(callable) != &PyWrapperDescr_Type) ||
      !is_container_class(PyDescr_TYPE(callable)) || arguments.positional.empty())
    return nullptr;
  const std::string name = text_of(PyDescr_NAME(callable));
  Value self = arguments.positional[0];
  // A Counter's own __getitem__ is a dict's.
  PyTypeObject* type = class_of(self);
  if (type == nullptr || PyType_IsSubtype(type, PyDescr_TYPE(callable)) == 0) return nullptr;
  const auto* known = as<Known>(self);
  const bool is_of_program =
      known != nullptr && !is_plain_dict(known->object.get()) && !is_container_class(type);
  if (is_of_program && PyDescr_TYPE(callable) == &PyList_Type && name == "append" &&
      known->source != nullptr) {
    expect_count(interpreter, arguments, 2, 2);
    return grow_list(interpreter, *known, arguments.positional[1]);
  }
  if (is_of_program || as<Instance>(self) != nullptr)
    self = items_for_method(interpreter, callable, name, arguments);
  if (self == nullptr) return nullptr;
  CallArguments rest = arguments;
  rest.positional[0] = self;
  const auto list = shared_as<Sequence>(self);
  if (list != nullptr && list->is_list && rest.positional.size() > 1) {
    // Where its own elements are added to a list, it is not asked for its iteration.
    Value& last = rest.positional.back();
    const Value& whole = arguments.positional[0];
    const bool adds = name == "extend" || name == "__iadd__" || name == "__init__" ||
                      (name == "__setitem__" && as<SliceValue>(rest.positional[1]) != nullptr);
    if (adds && (last == whole || (known != nullptr && known_object(last) == known->object.get())))
      last = list;
    if (Value result = call_list_operator(interpreter, name, whole, list, last)) return result;
  }
  if (name.starts_with("__")) return call_special(interpreter, name, rest);
  rest.positional.erase(rest.positional.begin());
  Value method = builtin_method(interpreter, self, name);
  if (method == nullptr) method = builtin_method(interpreter, opened(interpreter, self), name);
  return method == nullptr ? nullptr : call(interpreter, method, rest);
}

}  // namespace janus::frontend
