#include "frontend/values/batch_sizes.h"

#include <string>

#include "ops/list.h"

namespace janus::frontend {

std::optional<graph::Dim> batch_at_first_step(const graph::Value& value) {
  const graph::Node* select = value.definition;
  if (select == nullptr || select->op != &op::select ||
      select->attributes.get_or<int64_t>("index", -1) != 0)
    return std::nullopt;
  const graph::Value* sizes = select->inputs[0];
  const graph::Node* pack = sizes->definition;
  if (pack == nullptr || pack->op != &op::opaque || sizes->index != 1 ||
      pack->attributes.get_or<std::string>("operator", "") != "aten::_pack_padded_sequence")
    return std::nullopt;
  return pack->inputs[0]->type.shape[pack->attributes.get<bool>("batch_first") ? 0 : 1];
}

}  // namespace janus::frontend
