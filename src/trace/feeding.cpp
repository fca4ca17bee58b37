#include "trace/feeding.h"

namespace janus::trace {

void Feeding::begin() {
  decisions_.clear();
  given_.assign(nodes_->slots.size(), {});
  symbols_.clear();
  feeds_ = numbers_ = 0;
}

void Feeding::add(const Cursor& cursor, const Event& event) {
  for (const Decision& decision : cursor.decisions()) decisions_.push_back(decision.value);
  const Node& node = nodes_->nodes[cursor.node()];
  for (size_t i = 0; i < event.operands.size(); ++i) {
    const Operand& operand = event.operands[i];
    if (operand.kind == Operand::Kind::number) {
      given_[node.inputs[i].slot].push_back(numbers_++);
    } else if (operand.kind == Operand::Kind::feed && operand.index == feeds_) {
      given_[node.inputs[i].slot].push_back(feeds_++);
    }
  }
}

void Feeding::finish(const Cursor& cursor) {
  for (const Decision& decision : cursor.decisions()) decisions_.push_back(decision.value);
  symbols_.assign(cursor.symbols().begin(), cursor.symbols().end());
}

int64_t Feeding::symbol(int32_t symbol) const {
  const int64_t value = symbols_[static_cast<size_t>(symbol)];
  return value == 0 ? 2 : value;
}

}  // namespace janus::trace
