#include "kernels/loop_nest.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace janus::kernels {
namespace {

constexpr const char* kOpcodeNames[] = {"load",    "number", "constant", "convert", "add",
                                        "sub",     "mul",    "div",      "rem",     "neg",
                                        "bit_and", "bit_or", "bit_xor",  "compare", "select",
                                        "call",    "reduce", "extent",   "pick",    "position"};
constexpr const char* kComparisonNames[] = {"eq", "ne", "lt", "le", "gt", "ge"};

constexpr const char* kCombineNames[] = {"sum", "product", "maximum", "minimum", "any", "all"};

void print_axes(std::ostream& out, const ops::Axes& axes) {
  out << " (";
  for (size_t d = 0; d < axes.size(); ++d) {
    out << (d == 0 ? "" : " ");
    if (axes[d] < 0)
      out << "-";
    else
      out << axes[d];
  }
  out << ")";
}

void print_map(std::ostream& out, const ops::IndexMap& map) {
  out << " {";
  for (size_t k = 0; k < map.mapped_rank(); ++k) {
    out << (k == 0 ? "" : "; ");
    bool empty = true;
    for (size_t j = 0; j < map.space_rank; ++j) {
      const int64_t factor = map.factor(k, j);
      if (factor == 0) continue;
      out << (empty ? "" : " + ");
      if (factor != 1) out << factor << "*";
      out << j;
      empty = false;
    }
    const int64_t offset = map.offset[k];
    if (empty)
      out << "at " << offset;
    else if (offset != 0)
      out << (offset < 0 ? " - " : " + ") << std::abs(offset);
  }
  out << "}";
}

void print_tensors(std::ostream& out, const LoopNest& nest, size_t first, size_t end) {
  for (size_t t = first; t < end; ++t) {
    out << (t == first ? "" : ", ") << "t" << t << ": " << graph::name(nest.tensor_dtype(t));
    if (const ops::IndexMap* map = nest.map(t))
      print_map(out, *map);
    else if (nest.has_rank)
      print_axes(out, nest.axes[t]);
  }
}

/// The exact value: two constants must never share a text.
void print_constant(std::ostream& out, const Instruction& instruction) {
  if (graph::is_floating(instruction.dtype))
    out << std::hexfloat << std::bit_cast<double>(instruction.bits) << std::defaultfloat;
  else
    out << std::bit_cast<int64_t>(instruction.bits);
}

void print_space(std::ostream& out, const LoopNest& nest) {
  out << "space " << nest.rank;
  if (nest.sizes.empty() || nest.reduced != 0) out << ", reduced";
  for (int d = 0; d < nest.rank; ++d)
    if ((nest.reduced >> d & 1) != 0) out << " " << d;
  if (!nest.sizes.empty()) out << ", sizes";
  for (const int64_t size : nest.sizes) {
    if (size < 0)
      out << " -";
    else
      out << " " << size;
  }
  out << "\n";
}

void print_instruction(std::ostream& out, const Instruction& instruction) {
  out << (instruction.may_fail ? "look_up" : kOpcodeNames[static_cast<size_t>(instruction.opcode)]);
  switch (instruction.opcode) {
    case Opcode::load:
    case Opcode::pick:
      out << " t" << instruction.index;
      break;
    case Opcode::number:
      out << " n" << instruction.index;
      break;
    case Opcode::extent:
      out << " " << instruction.index;
      break;
    case Opcode::position:
      out << " -" << instruction.index;
      break;
    case Opcode::reduce:
      out << " " << kCombineNames[static_cast<size_t>(instruction.combine)];
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

}  // namespace

int cost(const Instruction& instruction) {
  switch (instruction.opcode) {
    case Opcode::number:
    case Opcode::constant:
    case Opcode::extent:
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

int LoopNest::cost() const {
  int total = static_cast<int>(results.size());
  for (const Instruction& instruction : code) total += kernels::cost(instruction);
  return total;
}

int LoopNest::append(const Instruction& instruction) {
  const auto found = std::find(code.begin(), code.end(), instruction);
  if (found != code.end()) return static_cast<int>(found - code.begin());
  code.push_back(instruction);
  return static_cast<int>(code.size()) - 1;
}

size_t LoopNest::tensor_of_position(uint32_t dim) const {
  const auto found = std::ranges::find(positions, dim);
  return held_count() + static_cast<size_t>(found - positions.begin());
}

uint32_t LoopNest::index_of_number(TensorNumber number) {
  auto found = std::ranges::find(tensor_numbers, number);
  if (found == tensor_numbers.end()) found = tensor_numbers.insert(found, number);
  const auto place = static_cast<size_t>(found - tensor_numbers.begin());
  return static_cast<uint32_t>(numbers.size() + place);
}

bool LoopNest::may_fail() const { return std::ranges::any_of(code, looks_up); }

std::vector<size_t> LoopNest::unused_look_ups() const {
  std::vector<bool> used(code.size());
  for (const int result : results) used[static_cast<size_t>(result)] = true;
  for (size_t i = code.size(); i-- > 0;)
    for (const int operand : code[i].operands)
      if (used[i] && operand >= 0) used[static_cast<size_t>(operand)] = true;
  std::vector<size_t> unused;
  for (size_t i = 0; i < code.size(); ++i)
    if (looks_up(code[i]) && !used[i]) unused.push_back(i);
  return unused;
}

bool LoopNest::combines() const {
  return std::ranges::any_of(code, [](const Instruction& one) {
    return one.opcode == Opcode::reduce || one.opcode == Opcode::pick;
  });
}

const ops::IndexMap* LoopNest::map(size_t tensor) const {
  if (tensor >= maps.size() || maps[tensor].space_rank == 0) return nullptr;
  return &maps[tensor];
}

bool LoopNest::runs_along_reduced(size_t tensor) const {
  if (const ops::IndexMap* by = map(tensor)) {
    for (size_t i = 0; i < by->factors.size(); ++i)
      if (by->factors[i] != 0 && (reduced >> i % by->space_rank & 1) != 0) return true;
    return false;
  }
  return std::ranges::any_of(axes[tensor],
                             [&](int axis) { return axis >= 0 && (reduced >> axis & 1) != 0; });
}

std::string print(const LoopNest& nest) {
  std::ostringstream out;
  if (nest.has_rank) print_space(out, nest);
  print_tensors(out, nest, 0, nest.inputs.size());
  for (size_t i = 0; i < nest.numbers.size(); ++i)
    out << (i == 0 && nest.inputs.empty() ? "" : ", ") << "n" << i << ": "
        << graph::name(nest.numbers[i]);
  for (size_t i = 0; i < nest.tensor_numbers.size(); ++i) {
    const TensorNumber& number = nest.tensor_numbers[i];
    out << ", n" << nest.numbers.size() + i << ": i64 "
        << (number.kind == TensorNumber::Kind::step ? "step" : "size") << " t" << number.tensor
        << " " << number.dim;
  }
  out << " -> ";
  print_tensors(out, nest, nest.inputs.size(), nest.held_count());
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
