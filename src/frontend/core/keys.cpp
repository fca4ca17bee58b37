#include "frontend/core/keys.h"

#include "frontend/core/frames.h"
#include "frontend/values/identity_number.h"

namespace janus::frontend {

using python::Object;

bool same_key(const Frames& frames, PyObject* left, PyObject* right) {
  if (left == right) return true;
  const bool first = is_identity_number(left), second = is_identity_number(right);
  if (first && second) return false;
  if (first || second) {
    // An object has one number only: it is not that of another kind of object.
    PyObject* const other = first ? right : left;
    if (PyLong_Check(other) && !is_lasting_number(other))
      frames.refuse(ReasonCode::dynamic_value, "the id of an object among other numbers");
    return false;
  }
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
