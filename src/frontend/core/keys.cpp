#include "frontend/core/keys.h"

#include "frontend/core/interpreter.h"

namespace janus::frontend {

using python::Object;

bool same_key(Interpreter& interpreter, PyObject* left, PyObject* right) {
  if (left == right) return true;
  Py_hash_t a = PyObject_Hash(left), b = PyObject_Hash(right);
  if (PyErr_Occurred() != nullptr) interpreter.refuse_raised();
  if (a != b) return false;
  int equal = PyObject_RichCompareBool(left, right, Py_EQ);
  if (equal < 0) interpreter.refuse_raised();
  return equal == 1;
}

void change_item(Interpreter& interpreter, Dictionary& dictionary, const Object& key,
                 const Value& value) {
  for (auto item = dictionary.items.begin(); item != dictionary.items.end(); ++item) {
    if (!same_key(interpreter, item->first.get(), key.get())) continue;
    if (value == nullptr)
      dictionary.items.erase(item);
    else
      item->second = value;
    return;
  }
  if (value != nullptr) dictionary.items.emplace_back(key, value);
}

}  // namespace janus::frontend
