// What the rounds of loops in the graph show (frontend/effects.h), and texts that they make: which
// calls are made, and of what, goes through the loops as lists, so that they can be made after the
// run, in order.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "frontend/value.h"

namespace janus::frontend {

class Interpreter;

class Journal {
 public:
  /// While one lives, the rounds of a loop are interpreted. Behind the outermost one, what they
  /// have shown becomes an effect.
  class Rounds {
   public:
    explicit Rounds(Interpreter& interpreter);
    ~Rounds();
    Rounds(const Rounds&) = delete;
    Rounds& operator=(const Rounds&) = delete;
    /// The loop has become a node.
    void finish();

   private:
    Interpreter& interpreter_;
  };

  bool is_open() const { return open_ > 0; }
  /// The call, in a round.
  void add(Interpreter& interpreter, const speculate::Template& call);
  size_t count() const { return count_; }
  /// What the only entry is, time after time, as a list; nothing if there are several.
  std::optional<speculate::Template> each(Interpreter& interpreter) const;

 private:
  /// A call that is made of other results each time.
  struct Entry {
    speculate::Template call;                       ///< with items in place of results
    std::vector<std::shared_ptr<Sequence>> values;  ///< what the items were, time after time
    std::vector<graph::Type> types;
  };
  size_t entry_of(Interpreter& interpreter, speculate::Template call,
                  const std::vector<graph::Value*>& values);
  std::shared_ptr<Sequence> new_list(Interpreter& interpreter) const;
  speculate::Template each_of(Interpreter& interpreter, const Entry& entry) const;
  void show(Interpreter& interpreter);

  size_t open_ = 0, count_ = 0;
  std::vector<Entry> entries_;
  std::shared_ptr<Sequence> order_;  ///< which of the entries, call after call
};

}  // namespace janus::frontend
