#include "kernels/loop_nest.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace janus::kernels {
namespace {

constexpr const char* kOpcodeNames[] = {
    "load", "number", "constant", "convert", "add",     "sub",     "mul",    "div",
    "rem",  "neg",    "bit_and",  "bit_or",  "bit_xor", "compare", "select", "call"};
constexpr const char* kComparisonNames[] = {"eq", "ne", "lt", "le", "gt", "ge"};

void print_tensors(std::ostream& out, const std::vector<DType>& dtypes, size_t first) {
  for (size_t i = 0; i < dtypes.size(); ++i)
    out << (i == 0 ? "" : ", ") << "t" << first + i << ": " << graph::name(dtypes[i]);
}

/// The exact value: two constants must never share a text.
void print_constant(std::ostream& out, const Instruction& instruction) {
  if (graph::is_floating(instruction.dtype))
    out << std::hexfloat << std::bit_cast<double>(instruction.bits) << std::defaultfloat;
  else
    out << std::bit_cast<int64_t>(instruction.bits);
}

void print_instruction(std::ostream& out, const Instruction& instruction) {
  out << kOpcodeNames[static_cast<size_t>(instruction.opcode)];
  switch (instruction.opcode) {
    case Opcode::load:
      out << " t" << instruction.index;
      break;
    case Opcode::number:
      out << " n" << instruction.index;
      break;
    case Opcode::constant:
      out << " ";
      print_constant(out, instruction);
      break;
    case Opcode::compare:
      out << " " << kComparisonNames[static_cast<size_t>(instruction.comparison)];
      break;
    case Opcode::call:
      out << " " << instruction.function->name;
      break;
    default:
      break;
  }
  for (size_t i = 0; i < instruction.operands.size() && instruction.operands[i] >= 0; ++i)
    out << (i == 0 ? " %" : ", %") << instruction.operands[i];
  out << " : " << graph::name(instruction.dtype);
}

int cost_of(const Instruction& instruction) {
  switch (instruction.opcode) {
    case Opcode::number:
    case Opcode::constant:
      return 0;
    case Opcode::div:
      return 6;
    case Opcode::rem:
      return 30;
    case Opcode::call:
      return instruction.function->cost;
    default:
      return 1;
  }
}

}  // namespace

int LoopNest::cost() const {
  int total = static_cast<int>(results.size());
  for (const Instruction& instruction : code) total += cost_of(instruction);
  return total;
}

int LoopNest::append(const Instruction& instruction) {
  const auto found = std::find(code.begin(), code.end(), instruction);
  if (found != code.end()) return static_cast<int>(found - code.begin());
  code.push_back(instruction);
  return static_cast<int>(code.size()) - 1;
}

std::string print(const LoopNest& nest) {
  std::ostringstream out;
  print_tensors(out, nest.inputs, 0);
  for (size_t i = 0; i < nest.numbers.size(); ++i)
    out << (i == 0 && nest.inputs.empty() ? "" : ", ") << "n" << i << ": "
        << graph::name(nest.numbers[i]);
  out << " -> ";
  print_tensors(out, nest.outputs, nest.inputs.size());
  out << "\n";
  for (size_t i = 0; i < nest.code.size(); ++i) {
    out << "%" << i << " = ";
    print_instruction(out, nest.code[i]);
    out << "\n";
  }
  for (size_t i = 0; i < nest.results.size(); ++i)
    out << "store t" << nest.inputs.size() + i << ", %" << nest.results[i] << "\n";
  return std::move(out).str();
}

}  // namespace janus::kernels
