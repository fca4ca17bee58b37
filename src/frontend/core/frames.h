// What is being interpreted, and how an interpretation gives up: the functions that are open with
// their spans and facts, and the refusals and exceptions that are thrown in them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "frontend/core/graph_writer.h"
#include "frontend/core/scopes.h"
#include "frontend/values/value.h"
#include "speculate/facts.h"
#include "speculate/generated.h"

namespace janus::frontend {

using speculate::ReasonCode;

/// Thrown to give up; becomes the Reason that generate() returns. Never leaves the room.
struct Refusal {
  speculate::Reason reason;
};

/// How a statement ended.
enum class Completion { normal, continue_, break_, return_, raise_ };

class Fork;

/// One function, comprehension or run of statements being interpreted.
struct Frame {
  std::shared_ptr<const Code> code;
  std::shared_ptr<Variables> variables;
  speculate::Facts* facts = nullptr;  ///< null: nothing was profiled
  Frame* caller = nullptr;
  graph::SourceSpan span;        ///< of the node being interpreted
  std::string name;              ///< of the function, for reports
  bool is_library = false;       ///< code of torch: spans shown to the user are those of its caller
  Value returned;                ///< by `return`
  std::vector<Value> arguments;  ///< for super(): the first positional argument
  bool runs_ahead = false;       ///< a generator's, whose values are taken when it has ended
  /// Of a generator: what is done with each value.
  std::function<void(const Value&)> at_yield;
  Value raised;                ///< by `raise`, or what else ended a statement so
  std::vector<Value> handled;  ///< exceptions whose handlers are being run, the outermost first
  /// What the code at hand stands in that handles exceptions of a class
  /// (frontend/core/exceptions.h); without a class: none may come there.
  struct Awaited {
    PyObject* type;
    size_t open_scopes;  ///< when it began
  };
  std::vector<Awaited> awaiting;
  std::vector<std::shared_ptr<Fork>> forks;  ///< tests one side of which has left (branches.h)
  const void* environment = nullptr;         ///< tells apart functions made of the same code
  size_t open_scopes = 0;                    ///< branches and loops around the call
  /// Frames of torch's own between this one and its caller, which nobody interprets.
  int uncounted = 0;
  std::shared_ptr<Variables>
      loop;  ///< innermost loop, if it is in the graph: where `break` is noted
  std::shared_ptr<Variables> returning;  ///< innermost loop in the graph: where `return` is noted
};

class Frames {
 public:
  Frames(const speculate::Call& call, speculate::ProfileStore& profiles, GraphWriter& writer,
         const Scopes& scopes)
      : call_(call), profiles_(profiles), writer_(writer), scopes_(scopes) {}
  Frames(const Frames&) = delete;
  Frames& operator=(const Frames&) = delete;

  // --- where we are
  const speculate::Call& call() const { return call_; }
  speculate::ProfileStore& profiles() { return profiles_; }
  Frame& frame() { return *frame_; }
  const Frame& frame() const { return *frame_; }
  /// Whether a frame is open: before the first one there is nothing to report.
  bool has_frame() const { return frame_ != nullptr; }
  /// The innermost span of the user's own code.
  const graph::SourceSpan& user_span() const;
  void at(const syntax::Node& node);
  /// How many nodes have been interpreted: if it is equal, the program has done nothing between.
  uint64_t steps() const { return steps_; }
  const speculate::NodeFact* fact(int number) const;
  /// A line for explain().
  void mark(speculate::LineMark::Kind kind, std::string note = {});
  void mark(speculate::LineMark::Kind kind, std::string note, const graph::SourceSpan& span);
  /// How deep calls are nested, and were at most since somebody set it.
  int depth() const { return depth_; }
  int deepest = 0;
  /// Whether the frame at hand is that of the function converted; never within a run of statements.
  bool at_entry() const { return depth_ <= 1 && call_.function != nullptr; }
  /// Code of torch, and our own programs for what torch has no text of.
  static bool is_library(const syntax::Tree& tree);

  // --- new frames
  /// The frame of a piece of code; facts are looked up.
  Frame make_frame(std::shared_ptr<const Code> code, std::shared_ptr<Variables> variables,
                   std::string name);
  /// Runs code in a new frame: caller, span and depth are kept right.
  Value run_frame(Frame& frame, const std::function<Value()>& body);
  /// Goes on in a frame that is not the innermost one, for as long as the body takes.
  void in_frame(Frame& frame, const std::function<void()>& body);
  /// What is done with the frame and the body of the generator that is called next.
  std::function<Value(Frame&, const syntax::Body&)> at_next_generator;
  /// Frame::uncounted of the function that is called next.
  int uncounted_of_next = 0;
  /// While backward() runs: how many frames of torch's stand between the program and what
  /// autograd's engine calls.
  int engine_frames = 0;

  // --- giving up
  [[noreturn]] void refuse(ReasonCode code, std::string details) const;
  /// For what communicates around the call of a module that can be converted by itself.
  [[noreturn]] void refuse_around(std::string what, python::Object module) const;
  /// Gives up because the C API raised: the program would raise the same. Clears the exception.
  [[noreturn]] void refuse_raised() const;
  /// `object`, or would_raise if it is null.
  python::Object must(PyObject* new_reference) const;
  /// Gives up if the graph has become too large, or its making too long.
  void check_size();

  // --- exceptions that the program handles
  /// From now on the frame at hand handles exceptions of the class; null: none may come there.
  void await(PyObject* type);
  /// Whether somebody handles an exception that is raised here, and only sides of branches are left
  /// on the way there. Null: of any class.
  bool awaits(PyObject* type) const;
  /// How many statements around the code at hand, in all open functions, would see an error of the
  /// run: by a handler, by `finally` or by `__exit__`.
  int seeing_errors = 0;

 private:
  const speculate::Call& call_;
  speculate::ProfileStore& profiles_;
  GraphWriter& writer_;
  const Scopes& scopes_;
  Frame* frame_ = nullptr;
  int depth_ = 0;
  uint64_t steps_ = 0;
};

/// While it lives, an error of the run that leaves the code at hand is seen, if `sees`.
class SeesErrors {
 public:
  SeesErrors(Frames& frames, bool sees) : frames_(frames), count_(sees ? 1 : 0) {
    frames_.seeing_errors += count_;
  }
  ~SeesErrors() { frames_.seeing_errors -= count_; }
  SeesErrors(const SeesErrors&) = delete;
  SeesErrors& operator=(const SeesErrors&) = delete;

 private:
  Frames& frames_;
  const int count_;
};

}  // namespace janus::frontend
