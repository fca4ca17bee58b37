// See container_operators.h.
#include "execute/code/container_operators.h"

#include "ops/list.h"

namespace janus::execute {

bool is_container_operator(const graph::OpDef& op) {
  return op.computed_by == graph::ComputedBy::containers;
}

bool is_list_access(const graph::OpDef& op) {
  return is_container_operator(op) && &op != &op::frame_pack && &op != &op::frame_unpack &&
         &op != &op::list_new && &op != &op::list_push && &op != &op::list_pop &&
         &op != &op::list_size;
}

}  // namespace janus::execute
