// See code.h.
#include "execute/code/code.h"

#include <set>

namespace janus::execute {

void note_moving_parts(Code& code, const std::vector<MovingPart>& parts) {
  for (Instruction& instruction : code.body.instructions)
    for (size_t i = 0; i < parts.size(); ++i) {
      if (parts[i].node != instruction.node) continue;
      instruction.moving_part = i;
      instruction.moving_dimension = parts[i].dimension;
    }
}

std::vector<bool> cells_of_kernels(const Code& code) {
  std::set<uint32_t> elsewhere(code.body.results.begin(), code.body.results.end());
  for (const Write& write : code.rebinds) elsewhere.insert(write.slot);
  for (const Instruction& instruction : code.body.instructions) {
    if (instruction.action == Action::kernel) continue;
    elsewhere.insert(instruction.operands().begin(), instruction.operands().end());
  }
  std::vector<bool> only(code.cells.size(), true);
  for (const auto& [slot, cell] : code.cell_reads)
    if (elsewhere.contains(slot)) only[cell] = false;
  return only;
}

}  // namespace janus::execute
