// Where symbolic dimensions get their values at run time: from a tensor's size, or from a node of
// the graph (operator `dimension`).
#pragma once

#include <set>
#include <string>

#include "graph/graph.h"

namespace janus::graph {

/// The symbol, if the size is a bare symbol; else empty.
std::string symbol_shown_by(const Dim& size);
/// The symbol that the node defines; empty for other nodes.
std::string symbol_given_by(const Node& node);
/// The symbols that nodes of the block, or of nested blocks, define.
std::set<std::string> symbols_given_in(const Block& block);
/// Whether the type mentions the symbol.
bool mentions(const Type& type, const std::string& symbol);
/// Whether the types or attributes of the node, or of nodes in its blocks, mention the symbol.
bool mentions(const Node& node, const std::string& symbol);
/// Whether an attribute of this very node mentions one of the symbols.
bool is_parameterised_by(const Node& node, const std::set<std::string>& symbols);

}  // namespace janus::graph
