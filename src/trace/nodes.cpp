#include "trace/nodes.h"

#include <algorithm>

#include "base/check.h"

namespace janus::trace {

std::string symbol_name(int32_t symbol) { return cat("s", symbol); }

namespace {

size_t symbol_number(const std::string& name) { return std::stoul(name.substr(1)); }

}  // namespace

graph::Type Pattern::symbolic() const {
  graph::Type result = type;
  for (size_t i = 0; i < symbols.size(); ++i)
    if (symbols[i] >= 0)
      result.shape[i] = graph::Dim::symbol(symbol_name(symbols[i]));
    else if (symbols[i] == kFollows)
      result.shape[i] = expressions.at(i);
  return result;
}

bool Pattern::is_derived() const {
  return std::find(symbols.begin(), symbols.end(), kDerived) != symbols.end();
}

bool Pattern::fits(const graph::Type& seen, Bindings& bound) const {
  if (seen.kind != type.kind || seen.rank() != type.rank()) return false;
  if (!type.is_tensor()) return seen == type;
  if (seen.dtype != type.dtype) return false;
  for (size_t i = 0; i < symbols.size(); ++i)
    if (!fits_size(i, seen.shape[i].value(), bound)) return false;
  return true;
}

bool Pattern::fits(const std::vector<int64_t>& sizes, Bindings& bound) const {
  if (sizes.size() != symbols.size()) return false;
  for (size_t i = 0; i < sizes.size(); ++i)
    if (!fits_size(i, sizes[i], bound)) return false;
  return true;
}

bool Pattern::fits_size(size_t index, int64_t size, Bindings& bound) const {
  const int32_t symbol = symbols[index];
  if (symbol == kConstant) return size == type.shape[index].value();
  if (size < 2) return false;
  if (symbol == kFollows) bound.claims.push_back({&expressions.at(index), size});
  if (symbol < 0) return true;
  int64_t& known = bound.values[static_cast<size_t>(symbol)];
  if (known != 0 && known != size) return false;
  known = size;
  return true;
}

graph::Type sizes_as_type(const std::vector<int64_t>& sizes) {
  return graph::Type::tensor(graph::DType::i64, graph::Shape(sizes.begin(), sizes.end()));
}

bool Bindings::hold() const {
  const auto value_of = [&](const std::string& name) -> std::optional<int64_t> {
    const int64_t value = values[symbol_number(name)];
    return value == 0 ? std::nullopt : std::optional(value);
  };
  return std::ranges::all_of(claims, [&](const Claim& claim) {
    return claim.expression->evaluate(value_of) == claim.value;
  });
}

bool Input::has(Source::Kind kind) const {
  return std::any_of(sources.begin(), sources.end(),
                     [kind](const Source& source) { return source.kind == kind; });
}

const Pattern& Nodes::pattern(const Source& source) const {
  switch (source.kind) {
    case Source::Kind::result:
      return nodes[source.node].results[source.index];
    case Source::Kind::slot:
      return nodes[source.node].inputs[source.index].early;
    case Source::Kind::cell:
      return cells.at(source.cell);
    default:
      TORCHJANUS_CHECK(false, "trace: a source without a pattern");
  }
}

}  // namespace janus::trace
