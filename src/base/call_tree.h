// The calls of a program in windows of time: which function was called by which, how often, and how
// long it took. Calls with equal paths of functions are one node, over all windows.
//
// The tree finds where a loop calls: a function that is called again and again while its caller
// goes on. It knows neither Python nor clocks; times are what its user gives, in milliseconds.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <vector>

namespace janus {

class CallTree {
 public:
  using Key = const void*;  ///< identifies a function

  struct Active {
    Active(Key key, bool is_covered = false) : key(key), is_covered(is_covered) {}
    Key key;
    bool is_covered;
  };
  /// Opens a window while these calls, outermost first, are active.
  void begin_window(const std::vector<Active>& active, double now);
  /// A function is called by the one that was called last and has not returned. `is_covered`: what
  /// calls it is an answer already, so neither it nor what it calls becomes another one.
  void enter(Key key, double now, bool is_covered = false);
  /// The innermost active call has ended. It counts as a call, wherever it began.
  void leave(double now);
  /// The innermost active call, and so those around it, do what is looked for.
  void mark();
  /// Closes the window. Calls that are still active are not counted, but their time is.
  void end_window(double now);

  /// What becomes of a function that is called repeatedly.
  enum class Choice {
    take,   ///< it is an answer
    below,  ///< its callees are asked instead
    skip    ///< neither
  };
  struct Threshold {
    uint64_t calls;   ///< that make a function repeated
    double share;     ///< of the watched time
    uint64_t within;  ///< calls of a function by one that has ended once or twice itself
  };
  /// The outermost functions with a mark that were called repeatedly, if `choose` takes them. Those
  /// that took longest come first. A function that has ended, but is not repeated yet, may be the
  /// step of a loop, of which more calls will come. So only what it calls very often counts. A
  /// function that several others call is a helper: its callees are asked instead. A function that
  /// was seen under a covered call is none, wherever else it is called.
  std::vector<Key> repeated(const Threshold& least, const std::function<Choice(Key)>& choose) const;

  /// The innermost active call; null outside of all that were seen.
  Key innermost() const { return active_.empty() ? nullptr : active_.back().key; }
  /// Milliseconds in windows.
  double watched() const { return watched_; }
  /// Forgets all calls. No window may be open.
  void clear();

 private:
  struct Node {
    uint64_t calls = 0;  ///< that have ended
    double time = 0;     ///< within windows, with the calls below
    bool is_marked = false;
    bool is_covered = false;  ///< at its last call
    std::map<Key, std::unique_ptr<Node>> callees;
  };
  struct Call {
    Key key;
    Node* node;
    double since;
  };

  /// The functions with a mark that several different functions call.
  std::set<Key> helpers() const;
  /// The functions of covered calls, and those that they call.
  std::set<Key> covered() const;

  Node root_;
  std::vector<Call> active_;  ///< outermost first
  double watched_ = 0, window_start_ = 0;
};

}  // namespace janus
