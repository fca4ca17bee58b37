// Which operator computed what a tensor holds.
#pragma once

#include <string>

#include "graph/graph.h"

namespace janus::frontend {

struct Producer {
  const graph::OpDef* op = nullptr;  ///< null: none that the graph has
  std::string name;                  ///< of which eager makes its autograd node's name

  Producer() = default;
  Producer(const graph::OpDef& op);  // NOLINT: one stands for the other
  static Producer named(std::string name) {
    Producer producer;
    producer.name = std::move(name);
    return producer;
  }

  bool is(const graph::OpDef& other) const { return op == &other; }
  bool operator==(const Producer&) const = default;
};

}  // namespace janus::frontend
