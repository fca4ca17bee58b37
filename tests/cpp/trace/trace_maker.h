// Writes traces by hand.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "trace/trace.h"

namespace janus::trace {

inline graph::Type f32(std::initializer_list<int64_t> sizes) {
  return graph::Type::tensor(graph::DType::f32, graph::Shape(sizes.begin(), sizes.end()));
}

/// One trace. Locations are lines of "a.py". Feeds have to be used in the order in which they are
/// made.
class TraceMaker {
 public:
  explicit TraceMaker(Names& names) : names_(names) {}

  Operand feed(graph::Type type) { return Operand::feed(feeds_++, std::move(type)); }
  Operand cell(CellId id, graph::Type type) {
    names_.cells[id] = cat("w", id);
    return Operand::of_cell(id, std::move(type));
  }
  static Operand number() { return Operand::number(graph::Type::f64()); }

  /// The first result; others are `Operand::of_result(operand.index, r)`.
  Operand call(Location line, const std::string& name, std::vector<Operand> operands,
               std::vector<graph::Type> results, graph::Attributes attributes = {}) {
    static const std::map<std::string, std::string> arguments = {{"aten::neg", "self"},
                                                                 {"aten::tanh", "self"},
                                                                 {"aten::relu", "self"},
                                                                 {"aten::sum", "self"},
                                                                 {"aten::cat", "tensors*2"}};
    const auto found = arguments.find(name);
    return add(line,
               names_.operators.intern(
                   {.name = name,
                    .operands = found == arguments.end() ? "self,other" : found->second,
                    .attributes = std::move(attributes)}),
               std::move(operands), std::move(results));
  }
  Operand call(Location line, const std::string& name, std::vector<Operand> operands,
               graph::Type result) {
    return call(line, name, std::move(operands), std::vector<graph::Type>{std::move(result)});
  }
  void write(Location line, CellId cell, Operand value) {
    add(line, names_.operators.write(cell), {std::move(value)}, {});
  }
  void look(const Operand& value) {
    trace_.fetches.push_back({.event = value.index, .result = value.result});
  }

  const Trace& trace() const { return trace_; }

 private:
  Operand add(Location line, OperatorId op, std::vector<Operand> operands,
              std::vector<graph::Type> results) {
    names_.locations[line] = cat("a.py:", line);
    trace_.events.push_back({op, line, std::move(operands), std::move(results)});
    return Operand::of_result(static_cast<uint32_t>(trace_.events.size()) - 1);
  }

  Names& names_;
  Trace trace_;
  uint32_t feeds_ = 0;
};

}  // namespace janus::trace
