// See container_operators.h.
#include "execute/code/container_operators.h"

#include "ops/list.h"

namespace janus::execute {

bool is_container_operator(const graph::OpDef& op) {
  return &op == &op::frame_pack || &op == &op::list_new || &op == &op::list_push ||
         &op == &op::list_size || &op == &op::frame_unpack || &op == &op::list_pop ||
         is_list_access(op);
}

bool is_list_access(const graph::OpDef& op) {
  return &op == &op::list_item || &op == &op::list_reverse || &op == &op::list_resize ||
         &op == &op::list_sum || &op == &op::list_only || &op == &op::list_stack ||
         &op == &op::list_unstack || &op == &op::list_slice || &op == &op::list_join ||
         &op == &op::list_pick || &op == &op::list_order || &op == &op::list_find ||
         &op == &op::list_find_object || &op == &op::list_covers;
}

}  // namespace janus::execute
