#include "trace/nodes.h"

#include <algorithm>

#include "base/check.h"

namespace janus::trace {

std::string symbol_name(int32_t symbol) { return cat("s", symbol); }

graph::Type Pattern::symbolic() const {
  graph::Type result = type;
  for (size_t i = 0; i < symbols.size(); ++i)
    if (symbols[i] >= 0) result.shape[i] = graph::Dim::symbol(symbol_name(symbols[i]));
  return result;
}

bool Pattern::is_derived() const {
  return std::find(symbols.begin(), symbols.end(), kDerived) != symbols.end();
}

bool Pattern::fits(const graph::Type& seen, std::vector<int64_t>& bound) const {
  if (seen.kind != type.kind || seen.rank() != type.rank()) return false;
  if (!type.is_tensor()) return seen == type;
  if (seen.dtype != type.dtype) return false;
  for (size_t i = 0; i < symbols.size(); ++i) {
    const int64_t size = seen.shape[i].value();
    if (symbols[i] == kConstant ? size != type.shape[i].value() : size < 2) return false;
    if (symbols[i] < 0) continue;
    int64_t& known = bound[static_cast<size_t>(symbols[i])];
    if (known != 0 && known != size) return false;
    known = size;
  }
  return true;
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
