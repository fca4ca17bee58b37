// What a run found outside of its graph that may be otherwise by the time the same is computed once
// more, for a gradient of its gradient: what objects held, and the states of random generators as
// it began.
//
// The heap stays as it is while a graph runs, so a read is known by what it reads of which object,
// whatever the order in which another graph does the same reads.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

#include "execute/library/random_state.h"
#include "execute/values/operands.h"
#include "graph/graph.h"

namespace janus::execute {

class Findings {
 public:
  struct Read {
    uint32_t kind = 0;
    Slot object;
    int64_t index = 0;  ///< of an item
    Slot value;
  };

  /// A number for what an operator on objects reads: that of equal ones in all graphs that know the
  /// same objects.
  static uint32_t kind_of(const graph::Node& read);

  void note(uint32_t kind, const Operands& operands);
  /// Whether the run that noted has read it; the output is what it found then.
  bool find(uint32_t kind, const Operands& operands);

  /// Nothing is noted from here on: who is given these findings finds the same.
  void close() { is_closed_ = true; }
  bool is_closed() const { return is_closed_; }
  const std::vector<Read>& reads() const { return reads_; }

  std::unique_ptr<RandomState> random;  ///< null: the graph draws no numbers

 private:
  using Key = std::tuple<uint32_t, const void*, int64_t>;
  static Read read_of(uint32_t kind, const Operands& operands);
  static Key key_of(const Read& read) { return {read.kind, read.object.object(), read.index}; }

  bool is_closed_ = false;
  std::vector<Read> reads_;
  std::mutex mutex_;  ///< guards what follows
  std::map<Key, const Read*> by_key_;
};

}  // namespace janus::execute
