#include "trace/trace.h"

#include "base/check.h"

namespace janus::trace {

std::ostream& operator<<(std::ostream& out, const Operator& op) {
  out << op.name;
  const char* separator = " {";
  for (const auto& [name, value] : op.attributes) {
    out << separator << name << '=' << value;
    separator = ", ";
  }
  return out << (op.attributes.empty() ? "" : "}");
}

OperatorId OperatorTable::intern(Operator op) {
  std::vector<OperatorId>& candidates = by_text_[cat(op, ' ', op.operands)];
  for (const OperatorId id : candidates)
    if (operators_[id] == op) return id;
  candidates.push_back(static_cast<OperatorId>(operators_.size()));
  operators_.push_back(std::move(op));
  return candidates.back();
}

OperatorId OperatorTable::write(CellId cell) {
  const OperatorId id = intern(
      {.name = "write", .operands = "value", .attributes = {{"cell", static_cast<int64_t>(cell)}}});
  writes_.emplace(id, cell);
  return id;
}

const CellId* OperatorTable::written_cell(OperatorId id) const {
  const auto found = writes_.find(id);
  return found == writes_.end() ? nullptr : &found->second;
}

std::string Names::location(Location location) const {
  const auto found = locations.find(location);
  return found == locations.end() ? cat("location ", location) : found->second;
}

std::string Names::cell(CellId cell) const {
  const auto found = cells.find(cell);
  return found == cells.end() ? cat("cell", cell) : found->second;
}

std::string Names::call(OperatorId op, Location location) const {
  const std::string place = this->location(location);
  return place.empty() ? cat(operators[op]) : cat(operators[op], " at ", place);
}

Operand Operand::of_result(uint32_t event, uint32_t result) {
  return {.kind = Kind::result, .index = event, .result = result};
}

Operand Operand::feed(uint32_t number, graph::Type type) {
  return {.kind = Kind::feed, .index = number, .type = std::move(type)};
}

Operand Operand::of_cell(CellId cell, graph::Type type) {
  return {.kind = Kind::cell, .cell = cell, .type = std::move(type)};
}

Operand Operand::number(graph::Type type) {
  return {.kind = Kind::number, .type = std::move(type)};
}

bool alike(const graph::Type& a, const graph::Type& b) {
  if (a.kind != b.kind || a.rank() != b.rank()) return false;
  if (!a.is_tensor()) return a == b;
  if (a.dtype != b.dtype) return false;
  for (size_t i = 0; i < a.shape.size(); ++i)
    if (!(a.shape[i] == b.shape[i]) && (a.shape[i].value() < 2 || b.shape[i].value() < 2))
      return false;
  return true;
}

}  // namespace janus::trace
