#include "frontend/values/make.h"

namespace janus::frontend {

Value make_tuple(std::vector<Value> elements) {
  auto sequence = std::make_shared<Sequence>(false);
  sequence->elements = std::move(elements);
  return sequence;
}

Value make_list(std::vector<Value> elements) {
  auto sequence = std::make_shared<Sequence>(true);
  sequence->elements = std::move(elements);
  return sequence;
}

std::shared_ptr<Iterator> iterate_elements(std::vector<Value> elements) {
  auto shared = std::make_shared<std::vector<Value>>(std::move(elements));
  auto position = std::make_shared<size_t>(0);
  return std::make_shared<Iterator>([shared, position]() -> Value {
    return *position < shared->size() ? (*shared)[(*position)++] : nullptr;
  });
}

std::shared_ptr<Dictionary> made_dict(python::Object type) {
  auto dictionary = std::make_shared<Dictionary>();
  dictionary->type = std::move(type);
  PyTypeObject* const of =
      dictionary->type ? reinterpret_cast<PyTypeObject*>(dictionary->type.get()) : &PyDict_Type;
  if (of->tp_dictoffset != 0) dictionary->attributes = std::make_shared<Dictionary>();
  return dictionary;
}

}  // namespace janus::frontend
