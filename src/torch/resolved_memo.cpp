// See resolved_memo.h.
#include "torch/resolved_memo.h"

#include <algorithm>
#include <sstream>

#include "base/policy.h"

namespace janus::torch {

using frontend::OperatorArgument;
using frontend::ResolvedOperator;

namespace {

void describe(std::ostream& out, const OperatorArgument& argument) {
  using Kind = OperatorArgument::Kind;
  switch (argument.kind) {
    case Kind::tensor:
      out << argument.type << (argument.requires_grad ? " grad" : "");
      for (const int64_t stride : argument.strides) out << ' ' << stride;
      break;
    case Kind::number:
      out << argument.type;
      break;
    case Kind::dimension:
      out << argument.dim;
      break;
    case Kind::constant:  // none: others are attributes
    case Kind::sequence:
      out << "none";
  }
  out << ';';
}

std::string key_of(const ResolvedOperator& asked) {
  std::ostringstream out;
  for (const auto& [name, value] : asked.attributes) out << name << '=' << value << ';';
  for (const OperatorArgument* operand : asked.operands) {
    if (operand == nullptr) {
      out << "none;";
    } else {
      describe(out, *operand);
    }
  }
  return std::move(out).str();
}

}  // namespace

bool ResolvedMemo::recall(ResolvedOperator& asked) const {
  const auto found = remembered_.find(key_of(asked));
  if (found == remembered_.end()) return false;
  ResolvedOperator resolved = found->second.resolved;
  resolved.attributes = std::move(asked.attributes);
  resolved.operands = std::move(asked.operands);
  for (const int index : found->second.same_as) {
    resolved.same_as.push_back(index < 0 ? nullptr : resolved.operands[static_cast<size_t>(index)]);
  }
  asked = std::move(resolved);
  return true;
}

void ResolvedMemo::note(const ResolvedOperator& resolved) {
  if (remembered_.size() >= policy::kMostResolvedCalls) remembered_.clear();
  Remembered entry{resolved, {}};
  for (const OperatorArgument* argument : resolved.same_as) {
    const auto place = std::ranges::find(resolved.operands, argument);
    if (argument != nullptr && place == resolved.operands.end()) return;
    entry.same_as.push_back(
        argument == nullptr ? -1 : static_cast<int>(place - resolved.operands.begin()));
  }
  entry.resolved.operands.clear();
  entry.resolved.same_as.clear();
  remembered_.insert_or_assign(key_of(resolved), std::move(entry));
}

}  // namespace janus::torch
