// Divides a backward run into parts, so that the first gradients can be used while the others are
// computed: processes that train together send them to each other meanwhile.
//
// The division is that of PyTorch's DistributedDataParallel (Li et al., "PyTorch Distributed:
// Experiences on Accelerating Data Parallel Training", VLDB 2020, section 3.2.3): gradients fall
// into buckets in the order in which the backward run completes them, and a bucket is full when its
// bytes reach a limit. The first limit is smaller, so that communication begins early. What is left
// over and smaller than that joins the last bucket, as a part costs its entry. Where the buckets
// that are sent are known, parts end with them.
//
// A node belongs to the first part that needs it. What later parts use as well is handed on: it is
// one more result of the part that makes it. Two things are not. Views, and what depends on
// nothing, are made again by each part. Inputs of the whole are given to each part that uses them,
// so that each can be freed behind the last of these.
//
// Who gets the gradient of a leaf may write to the leaf at once, as a hook that updates a parameter
// does. So what reads the memory of a leaf belongs to the part that gives its gradient, or to one
// before.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "graph/graph.h"

namespace janus::passes {

/// Some targets, by index: those of one bucket.
using Bucket = std::vector<size_t>;

struct BucketLimits {
  int64_t first = 0, rest = 0;  ///< bytes
  size_t most = 1;  ///< buckets; where they are not enough, all but the first are larger
};

/// Divides the targets, which are in that order. `bytes`: by target; none: it does not count.
std::vector<Bucket> buckets_of(const std::vector<size_t>& order, const std::vector<int64_t>& bytes,
                               const BucketLimits& limits);

/// By target: the number of the bucket in which processes send it; none: nobody does.
using BucketNumbers = std::vector<std::optional<size_t>>;

/// Divides the targets where a bucket is complete, and so are all before it: it is sent then. Those
/// that are smaller than the first limit come with the next one.
std::vector<Bucket> buckets_of(const std::vector<size_t>& order, const std::vector<int64_t>& bytes,
                               const BucketLimits& limits, const BucketNumbers& numbers);

/// Values are numbered: the inputs of the whole first, then what parts hand on.
struct BackwardPart {
  graph::Graph graph;
  std::vector<size_t> takes;  ///< for each input the value
  std::vector<bool> lasts;    ///< for each input whether a later part takes it too
  Bucket targets;             ///< its results are the gradients of these,
  std::vector<size_t> gives;  ///< then these values
};

/// The parts of a backward graph whose results are the gradients of the targets. `leaf_of_input`:
/// the target whose own memory an input is. Buckets that need nothing but what those before have
/// computed come with those before. Empty where there would be one part only, where a value of the
/// run defines a dimension, where parts would hand on anything but tensors and numbers, and where
/// the memory of a leaf may be seen in other ways than viewed() follows.
std::vector<BackwardPart> divide_backward(const graph::Graph& backward,
                                          const std::vector<Bucket>& buckets,
                                          const std::vector<std::optional<size_t>>& leaf_of_input);

/// The value that it is a view of, of a view, and so on; else the value.
const graph::Value* viewed(const graph::Value* value);
/// Whether it may share the memory of one of these values in a way that viewed() does not follow:
/// by an opaque operator, or as one of several views or of another dtype.
bool may_be_other_view(const graph::Value* value, std::span<graph::Value* const> values);

}  // namespace janus::passes
