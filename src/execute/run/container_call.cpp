// See container_call.h.
#include "execute/run/container_call.h"

#include "execute/code/container_operators.h"
#include "execute/run/list_call.h"
#include "execute/values/container.h"
#include "graph/op.h"
#include "ops/list.h"

namespace janus::execute {

namespace {

void unpack(const Operands& operands) {
  const std::span<const Slot> items = frame_items(operands.in(0));
  TORCHJANUS_CHECK(items.size() == operands.outputs.size(), "frame_unpack: a frame of ",
                   items.size(), " values for ", operands.outputs.size(), " results");
  for (size_t i = 0; i < items.size(); ++i) operands.out(i) = items[i];
}

bool is_empty(const graph::OpDef* op, const Slot& container) {
  return op == &op::list_pop ? list_size(container) == 0 : frame_items(container).empty();
}

}  // namespace

bool run_container(const Instruction& instruction, Library& library, Frame& frame) {
  const Operands operands{frame.slots.data(), instruction.inputs, instruction.outputs};
  const graph::Node& node = *instruction.node;
  if (is_list_access(*node.op)) return run_list_access(instruction, library, frame);
  if (node.op == &op::frame_pack) {
    std::vector<Slot> items;
    items.reserve(instruction.inputs.size());
    for (size_t i = 0; i < instruction.inputs.size(); ++i)
      items.push_back(kept(operands.in(i), library, frame));
    operands.out(0) = make_frame(std::move(items));
  } else if (node.op == &op::list_new) {
    operands.out(0) = empty_list();
  } else if (node.op == &op::list_push) {
    operands.out(0) = push(operands.in(0), kept(operands.in(1), library, frame));
  } else if (node.op == &op::list_size) {
    operands.out(0) = Slot::of(list_size(operands.in(0)));
  } else if (!is_empty(node.op, operands.in(0))) {
    if (node.op == &op::frame_unpack) {
      unpack(operands);
    } else {
      const Slot list = operands.in(0);
      operands.out(1) = last_item(list);
      operands.out(0) = without_last(list);
    }
  } else if (node.attributes.get_or<bool>("zeros", false)) {
    for (size_t i = 0; i < node.outputs.size(); ++i)
      operands.out(i) = zero(node.outputs[i]->type, library, frame.symbols);
  } else if (node.op == &op::list_pop) {
    return false;
  }
  return true;
}

}  // namespace janus::execute
