#include "frontend/objects/default_factory.h"

#include "frontend/core/class_of.h"
#include "frontend/objects/attributes.h"
#include "frontend/objects/container_classes.h"

namespace janus::frontend {

Value factory_of(Interpreter& interpreter, const Value& dictionary) {
  const auto* made = as<Dictionary>(dictionary);
  if (made != nullptr && made->factory != nullptr) return made->factory;
  if (class_of(dictionary) != default_dict_type()) return nullptr;
  return attribute(interpreter, dictionary, "default_factory");
}

}  // namespace janus::frontend
