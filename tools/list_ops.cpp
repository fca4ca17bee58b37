// list-ops: prints every operator as one line of tab-separated fields: name, ATen overload, schema,
// Python callables, traits.
#include <iostream>

#include "ops/list.h"

namespace {

using janus::graph::OpDef;
using janus::graph::Trait;

std::string traits_of(const OpDef& op) {
  struct Row {
    Trait trait;
    const char* name;
  };
  constexpr Row rows[] = {
      {Trait::pure, "pure"},
      {Trait::elementwise, "elementwise"},
      {Trait::view, "view"},
      {Trait::no_gradient, "no_gradient"},
      {Trait::random, "random"},
      {Trait::reads_heap, "reads_heap"},
      {Trait::writes_heap, "writes_heap"},
      {Trait::writes_state, "writes_state"},
      {Trait::may_fail, "may_fail"},
      {Trait::control, "control"},
      {Trait::composite, "composite"},
      {Trait::commutative, "commutative"},
      {Trait::linear, "linear"},
  };
  std::string text;
  for (const Row& row : rows)
    if (op.is(row.trait)) text += (text.empty() ? "" : " ") + std::string(row.name);
  return text;
}

}  // namespace

int main() {
  for (const OpDef* op : janus::ops::table().all())
    std::cout << op->name << '\t' << op->aten << '\t' << op->schema << '\t' << op->python << '\t'
              << traits_of(*op) << '\n';
}
