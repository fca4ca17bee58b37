// Methods are built from reading, writing and deleting single items.
#include "frontend/objects/dicts.h"

#include "frontend/core/class_of.h"
#include "frontend/core/exceptions.h"
#include "frontend/core/keys.h"
#include "frontend/core/known_callables.h"
#include "frontend/core/operations.h"
#include "frontend/objects/attributes.h"
#include "frontend/objects/container_classes.h"
#include "frontend/objects/default_factory.h"
#include "frontend/objects/dict_views.h"
#include "frontend/objects/entry_containers.h"
#include "frontend/objects/folding.h"
#include "frontend/objects/iteration.h"
#include "frontend/objects/membership.h"
#include "frontend/objects/special_callables.h"
#include "frontend/objects/subscripts.h"
#include "frontend/values/make.h"

namespace janus::frontend {

using python::Object;

namespace {

using Arguments = CallArguments;

bool is_ordered(const Dictionary& dictionary) {
  return dictionary.type.is(reinterpret_cast<PyObject*>(ordered_dict_type()));
}

Value pop_item(Interpreter& interpreter, const std::shared_ptr<Dictionary>& dictionary,
               const Arguments& arguments) {
  if (!is_ordered(*dictionary)) expect_count(interpreter, arguments, 0, 0);
  const Value* flag = arguments.keyword("last");
  if (!arguments.positional.empty()) flag = &arguments.positional[0];
  const bool last = flag == nullptr || truth(interpreter, *flag, -1);
  if (dictionary->items.empty())
    raise(interpreter, PyExc_KeyError, "KeyError: popitem(): dictionary is empty");
  const auto item = last ? dictionary->items.back() : dictionary->items.front();
  Value key = interpreter.constant(item.first);
  delete_subscript(interpreter, dictionary, key);
  return make_tuple({key, item.second});
}

Value move_to_end(Interpreter& interpreter, Dictionary& dictionary, const Arguments& arguments) {
  const Value* flag = arguments.keyword("last");
  if (arguments.positional.size() > 1) flag = &arguments.positional[1];
  const bool last = flag == nullptr || truth(interpreter, *flag, -1);
  if (arguments.positional.empty())
    interpreter.refuse(ReasonCode::would_raise, "TypeError: move_to_end()");
  const Object key = key_object(interpreter, arguments.positional[0]);
  for (auto item = dictionary.items.begin(); item != dictionary.items.end(); ++item) {
    if (!same_key(interpreter, item->first.get(), key.get())) continue;
    auto moved = *item;
    dictionary.items.erase(item);
    dictionary.items.insert(last ? dictionary.items.end() : dictionary.items.begin(), moved);
    return interpreter.none();
  }
  raise(interpreter, PyExc_KeyError, "KeyError");
}

std::vector<Value> dict_pairs(ValueMaker& maker, const Dictionary& dictionary) {
  std::vector<Value> pairs;
  for (const auto& [key, value] : dictionary.items)
    pairs.push_back(make_tuple({maker.constant(key), value}));
  return pairs;
}

void write_pairs(Interpreter& interpreter, const Value& self, const std::vector<Value>& pairs) {
  for (const Value& pair : pairs) {
    const auto& parts = as<Sequence>(pair)->elements;
    write_subscript(interpreter, self, parts[0], parts[1]);
  }
}

/// Writes what `dict(other)` takes: a mapping's keys with their values, or the pairs themselves;
/// each before the next is asked for, which may read it.
void update_from(Interpreter& interpreter, const Value& self, const Value& other) {
  if (const auto* dictionary = as<Dictionary>(other))
    return write_pairs(interpreter, self, dict_pairs(interpreter, *dictionary));
  const bool is_object = as<Known>(other) != nullptr || as<Instance>(other) != nullptr;
  // Of a dict that is gone through as one, Python asks no method.
  PyTypeObject* const type = class_of(other);
  if (is_object && type->tp_iter == PyDict_Type.tp_iter &&
      special_method(interpreter, other, "__iter__") != nullptr)
    return write_pairs(interpreter, self, dict_pairs(interpreter, *held_items(interpreter, other)));
  const Value keys = is_object ? attribute_or_null(interpreter, other, "keys") : nullptr;
  if (keys != nullptr) {
    for (const Value& key : elements_of(interpreter, call(interpreter, keys, {})))
      write_subscript(interpreter, self, key, subscript(interpreter, other, key));
    return;
  }
  for_each_element(interpreter, other, [&](const Value& pair) {
    const std::vector<Value> parts = elements_of(interpreter, pair);
    if (parts.size() != 2)
      interpreter.refuse(ReasonCode::would_raise, "ValueError: dictionary update sequence");
    write_subscript(interpreter, self, parts[0], parts[1]);
  });
}

}  // namespace

void update_dict(Interpreter& interpreter, const Value& self, const CallArguments& arguments) {
  if (arguments.positional.size() > 1)
    interpreter.refuse(ReasonCode::would_raise,
                       "TypeError: a dict of several positional arguments");
  for (const Value& argument : arguments.positional)
    update_from(interpreter, self, opened(interpreter, argument));
  for (const auto& [key, value] : arguments.keywords)
    write_subscript(interpreter, self, interpreter.string(key), value);
}

namespace {

/// dict.get, dict.setdefault and dict.pop share the search; of a real dict or one of the run.
Value dict_access(Interpreter& interpreter, const Value& self, const std::string& name,
                  const Arguments& arguments) {
  expect_count(interpreter, arguments, 1, 2);
  const Value& key = arguments.positional[0];
  Value otherwise = arguments.positional.size() > 1 ? arguments.positional[1] : nullptr;
  Value found = contains(interpreter, self, key) ? subscript(interpreter, self, key) : nullptr;
  if (name == "get") return found != nullptr ? found : otherwise ? otherwise : interpreter.none();
  if (name == "setdefault") {
    if (found != nullptr) return found;
    Value value = otherwise ? otherwise : interpreter.none();
    write_subscript(interpreter, self, arguments.positional[0], value);
    return value;
  }
  if (found == nullptr) {
    if (otherwise) return otherwise;
    raise(interpreter, PyExc_KeyError, "KeyError");
  }
  delete_subscript(interpreter, self, key);
  return found;
}

}  // namespace

Value dict_method(const std::shared_ptr<Dictionary>& dictionary, const std::string& name) {
  // A proxy has no others. (`copy` would give the dict that it stands for.)
  if (is_proxy(*dictionary) &&
      !(name == "keys" || name == "values" || name == "items" || name == "get"))
    return nullptr;
  auto native = [&](Native::Function function) {
    return std::make_shared<Native>("dict." + name, std::move(function));
  };
  if (name == "keys" || name == "values" || name == "items")
    return native([dictionary, name](Interpreter& inner, const Arguments& arguments) -> Value {
      expect_count(inner, arguments, 0, 0);
      return view_of(inner, dictionary, name);
    });
  if (name == "get" || name == "setdefault" || name == "pop")
    return native([dictionary, name](Interpreter& inner, const Arguments& arguments) {
      return dict_access(inner, dictionary, name, arguments);
    });
  if (name == "update")
    return native([dictionary](Interpreter& inner, const Arguments& arguments) {
      update_dict(inner, dictionary, arguments);
      return inner.none();
    });
  if (name == "copy")
    return native([dictionary](Interpreter& inner, const Arguments& arguments) -> Value {
      expect_count(inner, arguments, 0, 0);
      auto copy = made_dict(dictionary->type);
      copy->factory = factory_of(inner, dictionary);
      copy->items = dictionary->items;
      return copy;
    });
  if (name == "popitem")
    return native([dictionary](Interpreter& inner, const Arguments& arguments) {
      return pop_item(inner, dictionary, arguments);
    });
  if (name == "move_to_end" && is_ordered(*dictionary) && dictionary->source == nullptr)
    return native([dictionary](Interpreter& inner, const Arguments& arguments) {
      return move_to_end(inner, *dictionary, arguments);
    });
  if (name == "clear")
    return native([dictionary](Interpreter& inner, const Arguments& arguments) {
      expect_count(inner, arguments, 0, 0);
      if (auto dict = real_dict(dictionary))
        inner.heap.clear(inner.dict_target(dict->object, dict->source));
      dictionary->items.clear();
      return inner.none();
    });
  return nullptr;
}

Value real_dict_method(const Value& self, const std::string& name) {
  if (!is_plain_dict(as<Known>(self)->object.get())) return nullptr;
  if (name == "get" || name == "setdefault" || name == "pop")
    return std::make_shared<Native>("dict." + name,
                                    [self, name](Interpreter& inner, const Arguments& arguments) {
                                      return dict_access(inner, self, name, arguments);
                                    });
  if (name == "update")
    return std::make_shared<Native>("dict.update",
                                    [self](Interpreter& inner, const Arguments& arguments) {
                                      update_dict(inner, self, arguments);
                                      return inner.none();
                                    });
  return nullptr;
}

// --- classes ------------------------------------------------------------------------------------

namespace {

std::shared_ptr<Dictionary> dict_of(PyTypeObject* type) {
  return made_dict(Object::borrow(reinterpret_cast<PyObject*>(type)));
}

Value call_ordered_dict(Interpreter& interpreter, const Arguments& arguments) {
  auto dictionary = dict_of(ordered_dict_type());
  if (arguments.positional.size() > 1) return nullptr;
  update_dict(interpreter, dictionary, arguments);
  return dictionary;
}

bool is_callable(const Value& value) {
  const PyTypeObject* const type = class_of(value);
  return type == nullptr || type->tp_call != nullptr;
}

Value call_default_dict(Interpreter& interpreter, const Arguments& arguments) {
  auto dictionary = dict_of(default_dict_type());
  if (arguments.positional.size() > 2) return nullptr;
  dictionary->factory = arguments.positional.empty() ? interpreter.none() : arguments.positional[0];
  if (!is_none(dictionary->factory) && !is_callable(dictionary->factory))
    interpreter.refuse(ReasonCode::would_raise, "TypeError: the factory can't be called");
  Arguments items = arguments;
  if (!items.positional.empty()) items.positional.erase(items.positional.begin());
  update_dict(interpreter, dictionary, items);
  return dictionary;
}

Value call_counter(Interpreter& interpreter, const Arguments& arguments) {
  auto dictionary = dict_of(counter_type());
  if (arguments.positional.empty() && arguments.keywords.empty()) return dictionary;
  call(interpreter, attribute(interpreter, dictionary, "update"), arguments);
  return dictionary;
}

/// collections._count_elements(mapping, iterable)
Value call_count_elements(Interpreter& interpreter, const Arguments& arguments) {
  if (arguments.positional.size() != 2) return nullptr;
  const Value& mapping = arguments.positional[0];
  if (!is_counter(class_of(mapping))) return nullptr;
  for_each_element(interpreter, arguments.positional[1], [&](const Value& element) {
    Value count = contains(interpreter, mapping, element) ? subscript(interpreter, mapping, element)
                                                          : interpreter.integer(0);
    write_subscript(interpreter, mapping, element,
                    binary(interpreter, syntax::Operator::Add, count, interpreter.integer(1)));
  });
  return interpreter.none();
}

}  // namespace

std::span<const SpecialCallable> dict_callables() {
  static constexpr SpecialCallable table[] = {
      {"collections.OrderedDict", call_ordered_dict},
      {"collections.defaultdict", call_default_dict},
      {"collections.Counter", call_counter},
      {"collections._count_elements", call_count_elements},
  };
  return table;
}

}  // namespace janus::frontend
