// See findings.h. What is noted is sorted only when it is first asked for: few gradients have one.
#include "execute/library/findings.h"

#include <sstream>
#include <string>

#include "base/fork_safe_mutex.h"
#include "graph/op.h"

namespace janus::execute {

uint32_t Findings::kind_of(const graph::Node& read) {
  std::ostringstream text;
  text << read.op->name << ' ' << read.output()->type;
  for (const auto& [name, value] : read.attributes)
    if (name != "id" && name != "reason") text << ' ' << name << '=' << value;
  static auto* const kinds = new std::map<std::string, uint32_t>;
  const std::lock_guard lock(fork_safe_mutex<Findings>());
  return kinds->emplace(text.str(), static_cast<uint32_t>(kinds->size())).first->second;
}

Findings::Read Findings::read_of(uint32_t kind, const Operands& operands) {
  return {kind, operands.in(0), operands.inputs.size() > 1 ? operands.in(1).i64() : 0, {}};
}

void Findings::note(uint32_t kind, const Operands& operands) {
  reads_.push_back(read_of(kind, operands));
  reads_.back().value = operands.out(0);
}

bool Findings::find(uint32_t kind, const Operands& operands) {
  const std::lock_guard lock(mutex_);
  if (by_key_.empty())
    for (const Read& read : reads_) by_key_.emplace(key_of(read), &read);
  const auto found = by_key_.find(key_of(read_of(kind, operands)));
  if (found == by_key_.end()) return false;
  operands.out(0) = found->second->value;
  return true;
}

}  // namespace janus::execute
