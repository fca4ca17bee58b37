// Chooses how a node is computed.
#include "torch/operators.h"

#include "graph/op.h"
#include "ops/list.h"
#include "torch/batch_norm.h"
#include "torch/bernoulli.h"
#include "torch/boxed_operation.h"
#include "torch/classes.h"
#include "torch/collectives.h"
#include "torch/convolution.h"
#include "torch/element_writes.h"
#include "torch/layout_copy.h"
#include "torch/opaque_backward.h"
#include "torch/pooling.h"
#include "torch/products.h"
#include "torch/python_call.h"
#include "torch/reindex.h"
#include "torch/row_sums.h"
#include "torch/rows.h"

namespace janus::torch {

std::unique_ptr<execute::Operation> bind_operation(const graph::Node& node,
                                                   const execute::SymbolLookup& symbols) {
  if (node.op == &op::opaque_backward) return bind_opaque_backward(node, symbols);
  if (node.op == &op::opaque && records(node)) return bind_recorded_call(node, symbols);
  if (auto call = bind_python_call(node)) return call;
  if (auto product = bind_product(node)) return product;
  if (auto row = bind_row(node, symbols)) return row;
  if (auto convolution = bind_convolution(node, symbols)) return convolution;
  if (auto norm = bind_batch_norm(node, symbols)) return norm;
  if (auto classes = bind_classes(node, symbols)) return classes;
  if (auto bernoulli = bind_bernoulli(node)) return bernoulli;
  if (auto reindex = bind_reindex(node, symbols)) return reindex;
  if (auto sums = bind_row_sums(node, symbols)) return sums;
  if (auto writes = bind_element_writes(node)) return writes;
  if (auto pooling = bind_pooling(node, symbols)) return pooling;
  if (auto copy = bind_layout_copy(node, symbols)) return copy;
  if (auto collective = bind_collective(node, symbols)) return collective;
  return bind_boxed(node, symbols);
}

}  // namespace janus::torch
