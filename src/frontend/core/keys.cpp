#include "frontend/core/keys.h"

#include "frontend/core/frames.h"

namespace janus::frontend {

using python::Object;

bool same_key(const Frames& frames, PyObject* left, PyObject* right) {
  if (left == right) return true;
  Py_hash_t a = PyObject_Hash(left), b = PyObject_Hash(right);
  if (PyErr_Occurred() != nullptr) frames.refuse_raised();
  if (a != b) return false;
  int equal = PyObject_RichCompareBool(left, right, Py_EQ);
  if (equal < 0) frames.refuse_raised();
  return equal == 1;
}

void change_item(const Frames& frames, Dictionary& dictionary, const Object& key,
                 const Value& value) {
  for (auto item = dictionary.items.begin(); item != dictionary.items.end(); ++item) {
    if (!same_key(frames, item->first.get(), key.get())) continue;
    if (value == nullptr)
      dictionary.items.erase(item);
    else
      item->second = value;
    return;
  }
  if (value != nullptr) dictionary.items.emplace_back(key, value);
}

}  // namespace janus::frontend
