// Co-execution: a function that stays imperative runs in Python as it stands, while the operators
// that it calls are noted and run as graphs (src/lazy/).
//
// It is done where it pays: after calls that show how long one takes, the function runs lazily
// until most of its operators run in graphs, and then both ways by turns until it is clear which is
// faster. A function whose operators differ from call to call soon goes back to eager execution.
#pragma once

#include <Python.h>

#include <string_view>

#include "base/ab_test.h"
#include "base/options.h"

namespace janus::bind {

inline constexpr Switch kLazySwitch{
    "lazy", "operators of functions that stay imperative are noted and run as graphs"};

class CoExecution {
 public:
  /// As PyObject_Vectorcall.
  PyObject* call(PyObject* callee, PyObject* const* arguments, size_t flags,
                 PyObject* keyword_names);

  /// For reports: "eager", "undecided" or "co-executed".
  std::string_view state() const;
  /// Why it is eager for good; empty if it is not.
  std::string_view why_not() const { return why_not_; }
  /// Milliseconds of a call, eagerly and lazily; 0 before they were compared.
  double eager_milliseconds() const { return test_.has_both() ? 1e3 * test_.with_old() : 0; }
  double lazy_milliseconds() const { return test_.has_both() ? 1e3 * test_.with_new() : 0; }

 private:
  enum class Stage { looking, warming, comparing, co_executed, eager };

  bool is_next_lazy() const;
  void ended(double seconds, uint64_t noted, uint64_t in_graphs);
  void give_up(std::string_view why);

  Stage stage_ = Stage::looking;
  int calls_ = 0;       ///< in this stage
  double seconds_ = 0;  ///< in the stage of looking
  AbTest test_;
  std::string_view why_not_;
};

}  // namespace janus::bind
