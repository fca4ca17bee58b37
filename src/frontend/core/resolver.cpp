#include "frontend/core/resolver.h"

#include "frontend/values/constants.h"
#include "speculate/path.h"

namespace janus::frontend {

PyObject* Resolver::operator()(const Source* source) {
  auto known = objects_.find(source);
  if (known != objects_.end()) return known->second;
  PyObject* base = nullptr;
  if (source->base != nullptr && (base = (*this)(source->base)) == nullptr)
    return objects_[source] = nullptr;
  speculate::PathStep step;
  step.kind = source->kind;
  step.key = speculate::ExpectedObject(source->key.get(), nullptr);
  if (source->key && source->kind != Source::Kind::constant) {
    step.hash = PyObject_Hash(source->key.get());
    if (step.hash == -1) frames_.refuse_raised();
  }
  step.index = source->index;
  return objects_[source] = speculate::take_step(step, base, frames_.call(), owned_);
}

bool is_own_dictionary(const Source* source) {
  return source != nullptr && source->kind == Source::Kind::attribute &&
         text_of(source->key.get()) == "__dict__";
}

}  // namespace janus::frontend
