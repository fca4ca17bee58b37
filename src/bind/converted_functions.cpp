// See converted_functions.h.
#include "bind/converted_functions.h"

#include <unordered_set>

namespace janus::bind {
namespace {

std::unordered_multiset<const PyObject*>& converted() {
  static auto* all = new std::unordered_multiset<const PyObject*>();
  return *all;
}

}  // namespace

void note_converted(PyObject* function) { converted().insert(function); }

void forget_converted(PyObject* function) {
  if (const auto noted = converted().find(function); noted != converted().end())
    converted().erase(noted);
}

bool is_converted(PyObject* function) { return converted().contains(function); }

}  // namespace janus::bind
