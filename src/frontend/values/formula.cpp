// See formula.h.
#include "frontend/values/formula.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "graph/attribute.h"
#include "graph/op.h"
#include "ops/list.h"

namespace janus::frontend {

namespace {

struct Infix {
  const graph::OpDef* op;
  const char* sign;
  int binding;  ///< the higher, the closer
};

constexpr std::array kInfix = {
    Infix{&op::scalar_or, "or", 0},       Infix{&op::scalar_and, "and", 1},
    Infix{&op::scalar_eq, "==", 2},       Infix{&op::scalar_ne, "!=", 2},
    Infix{&op::scalar_lt, "<", 2},        Infix{&op::scalar_le, "<=", 2},
    Infix{&op::scalar_gt, ">", 2},        Infix{&op::scalar_ge, ">=", 2},
    Infix{&op::scalar_add, "+", 3},       Infix{&op::scalar_sub, "-", 3},
    Infix{&op::scalar_mul, "*", 4},       Infix{&op::scalar_truediv, "/", 4},
    Infix{&op::scalar_floordiv, "//", 4}, Infix{&op::scalar_mod, "%", 4},
};

std::string written(const graph::Value& number, int around) {
  const graph::Node* node = number.definition;
  if (node == nullptr) return number.name.empty() ? "…" : number.name;
  if (node->op == &op::constant) {
    const auto* value = node->attributes.find("value");
    return value == nullptr ? "None" : cat(*value);
  }
  if (node->op == &op::size) {
    std::string size = graph::to_string(node->attributes.get<graph::Dim>("of"));
    std::erase(size, '$');  // marks names that come from Python's ints
    return size;
  }
  if (node->op == &op::scalar_not) return cat("not ", written(*node->inputs[0], 5));
  const auto* infix = std::ranges::find(kInfix, node->op, &Infix::op);
  if (infix == kInfix.end()) return number.name.empty() ? "…" : number.name;
  std::string text = cat(written(*node->inputs[0], infix->binding), " ", infix->sign, " ",
                         written(*node->inputs[1], infix->binding + 1));
  return infix->binding < around ? cat("(", text, ")") : text;
}

}  // namespace

std::string formula(const graph::Value& number) { return written(number, 0); }

bool has_varying_int(const graph::Dim& number) {
  return graph::to_string(number).find('$') != std::string::npos;  // the mark of such symbols
}

bool is_of_remainder(const graph::Dim& number) {
  return has_varying_int(number) && graph::to_string(number).find('%') != std::string::npos;
}

}  // namespace janus::frontend
