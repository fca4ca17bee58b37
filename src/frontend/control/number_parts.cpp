#include "frontend/control/number_parts.h"

namespace janus::frontend {

using graph::Type;

std::optional<NumberParts> parts_by_kind(Interpreter& interpreter, const Value& value,
                                         const NumberKinds& kinds) {
  graph::Builder& builder = interpreter.builder();
  if (const auto* either = as<Either>(value)) {
    if (kind_of_number(either->if_true) != kinds.high ||
        kind_of_number(either->if_false) != kinds.low)
      return std::nullopt;
    return NumberParts{either->flag, interpreter.graph_value(either->if_true),
                       interpreter.graph_value(either->if_false)};
  }
  const auto kind = kind_of_number(value);
  if (!kind || (*kind != kinds.high && *kind != kinds.low)) return std::nullopt;
  const bool is_high = *kind == kinds.high;
  const auto nothing = [&](Type::Kind of) {
    return of == Type::Kind::f64   ? builder.constant(0.0)
           : of == Type::Kind::i64 ? builder.constant(int64_t{0})
                                   : builder.constant(false);
  };
  graph::Value* const number = interpreter.graph_value(value);
  return NumberParts{builder.constant(is_high), is_high ? number : nothing(kinds.high),
                     is_high ? nothing(kinds.low) : number};
}

}  // namespace janus::frontend
