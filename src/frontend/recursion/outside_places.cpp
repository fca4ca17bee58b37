#include "frontend/recursion/outside_places.h"

#include "frontend/core/heap.h"
#include "frontend/tensors/tensor.h"
#include "frontend/values/constants.h"

namespace janus::frontend {

std::string element_name(size_t index) { return std::to_string(index); }

OutsidePlace OutsidePlace::variable(Variables& variables, const std::string& name) {
  OutsidePlace place;
  place.object_ = &variables;
  place.owner_ = variables.owner();
  place.name_ = name;
  return place;
}

OutsidePlace OutsidePlace::element(Changeable& container, size_t index) {
  OutsidePlace place;
  place.object_ = &container;
  place.owner_ = container.owner();
  place.name_ = element_name(index);
  place.index_ = index;
  return place;
}

OutsidePlace OutsidePlace::contents(Tensor& tensor) {
  OutsidePlace place;
  place.object_ = &tensor;
  place.owner_ = tensor.owner();
  return place;
}

OutsidePlace OutsidePlace::change(const Heap::Table& table, const Heap::Change& change) {
  OutsidePlace place;
  place.table_.target = table.target;
  place.table_.paths = table.paths;
  place.change_ = change;
  place.change_.held = Held();
  return place;
}

Value OutsidePlace::get(Interpreter& interpreter) const {
  if (auto* variables = dynamic_cast<Variables*>(object_)) return variables->values[name_];
  if (auto* sequence = dynamic_cast<Sequence*>(object_)) return sequence->elements[index_];
  if (auto* dictionary = dynamic_cast<Dictionary*>(object_))
    return dictionary->items[index_].second;
  if (auto* tensor = dynamic_cast<Tensor*>(object_))
    return make_tensor(interpreter, read(interpreter, *tensor), false);
  PyObject* table = table_.target.table;
  Held held = interpreter.heap.find(interpreter, table, change_.key.get(), table_.target.owner);
  if (held.is_unknown()) held = interpreter.held_at_entry(table_, change_);
  return held.is_value() ? held.value() : nullptr;
}

void OutsidePlace::set(Interpreter& interpreter, const Value& value) const {
  if (auto* variables = dynamic_cast<Variables*>(object_)) {
    variables->values[name_] = value;
  } else if (auto* sequence = dynamic_cast<Sequence*>(object_)) {
    sequence->elements[index_] = value;
  } else if (auto* dictionary = dynamic_cast<Dictionary*>(object_)) {
    dictionary->items[index_].second = value;
  } else if (auto* tensor = dynamic_cast<Tensor*>(object_)) {
    write(interpreter, *tensor, as<Tensor>(value)->value);
  } else {
    Heap::Change change = change_;
    change.held = value;
    interpreter.heap.write(interpreter, table_.target, std::move(change));
    interpreter.heap.table_of(table_.target).paths.insert(table_.paths.begin(), table_.paths.end());
  }
}

std::string OutsidePlace::describe() const {
  if (dynamic_cast<const Variables*>(object_) != nullptr) return "the variable " + name_;
  if (object_ == nullptr) return "the attribute or item " + text_of(change_.key.get());
  return dynamic_cast<const Tensor*>(object_) != nullptr ? "a tensor" : "an element";
}

bool OutsidePlace::is_same(const OutsidePlace& other) const {
  if (object_ != nullptr || other.object_ != nullptr)
    return object_ == other.object_ && name_ == other.name_;
  return is(other.table_.target.table, other.change_.key.get());
}

bool OutsidePlace::is(const Changeable& object, const std::string& name) const {
  return object_ == &object && name_ == name;
}

bool OutsidePlace::is(PyObject* table, PyObject* key) const {
  return object_ == nullptr && table_.target.table == table && change_.key.is(key);
}

}  // namespace janus::frontend
