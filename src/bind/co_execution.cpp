#include "bind/co_execution.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "base/conversion_account.h"
#include "base/policy.h"
#include "base/steady_time.h"
#include "lazy/interception.h"
#include "speculate/ab_measurement.h"
#include "speculate/tensor_access.h"

namespace janus::bind {

namespace {

/// The share of its own time that may become less: what can't be converted gains less than what
/// can. Terra's ten programs ran 0.8 to 1.7 times as fast co-executed, and up to 3 times as graphs.
constexpr double kHopefulShare = 1.0 / 3;

/// Structures in an iteration that never came before, of an iteration that hardly has a graph soon.
constexpr uint64_t kManyNews = 4;  // chosen, not measured

/// Lazy turns that are not compared, as graphs for some of their operators are yet to come.
constexpr int kMostSettlingTurns = 32;  // chosen, not measured

/// Turns of this thread that are open and not decided: nothing within them begins to be.
thread_local int undecided = 0;

/// False with an exception set if memory runs out at the end of a turn.
bool ends() {
  try {
    lazy::end();
    return true;
  } catch (const std::exception& error) {
    if (PyErr_Occurred() == nullptr) PyErr_SetString(PyExc_RuntimeError, error.what());
    return false;
  }
}

/// Whether operators of this thread may be noted: nobody else intercepts them.
bool may_intercept() {
  return !lazy::has_begun() && !options().is_disabled(kLazySwitch.name) && lazy::may_begin() &&
         !speculate::tensor_access().environment().mode_active;
}

/// Whether graphs were made meanwhile, or a good part of the operators has none yet.
bool is_settling(const lazy::Session::Progress& before, const lazy::Session::Progress& now) {
  constexpr uint64_t kShareWithoutGraph = 8;  // one in so many; chosen, not measured
  return now.graphs != before.graphs || now.waited != before.waited ||
         kShareWithoutGraph * (now.one_by_one - before.one_by_one) > now.noted - before.noted;
}

/// Whether most operators ran in graphs.
bool is_mostly_in_graphs(uint64_t noted, uint64_t in_graphs) { return 2 * in_graphs >= noted; }

}  // namespace

/// Nothing runs ahead before it is decided that anything runs lazily.
void CoExecution::begin_lazy(Turn& turn) {
  if (stage_ == Stage::co_executed && !has_chooser_) turn.chooses = has_chooser_ = true;
  lazy::begin(turn.chooses ? &ahead_ : nullptr);
}

PyObject* CoExecution::call(PyObject* callee, PyObject* const* arguments, size_t flags,
                            PyObject* keyword_names) {
  Turn turn;
  if (!rests()) begin(turn, /*with_frame=*/false);
  PyObject* const result = PyObject_Vectorcall(callee, arguments, flags, keyword_names);
  if (!turn.is_open) return result;
  end_iteration(turn);
  if (end(turn, /*tells=*/true)) return result;
  Py_XDECREF(result);
  return nullptr;
}

void CoExecution::begin(Turn& turn, bool with_frame) {
  if (stage_ == Stage::eager) enter(Stage::looking);
  if ((undecided != 0 && stage_ != Stage::co_executed) || !may_intercept()) return;
  turn.is_open = true;
  // More was spent on graphs than the account covers: the comparison waits until it does again.
  turn.is_lazy = is_next_lazy() && (stage_ != Stage::comparing || is_covered(/*begins=*/false));
  turn.stage = stage_;
  turn.iterations = 0;
  if (stage_ != Stage::co_executed) ++undecided;
  if (turn.is_lazy) {
    begin_lazy(turn);
    turn.before = turn.last = lazy::Session::of_this_thread().progress();
    lazy::Session::of_this_thread().take_missing();  // of code before it
    turn.recording.emplace(record_, PyEval_GetFrame(), with_frame);
  }
  if (on_account_ && conversion_account() != nullptr) turn.used = processor_milliseconds();
  turn.start = steady_seconds();
}

bool CoExecution::end_iteration(Turn& turn) {
  ++turn.iterations;
  ++total_;
  if (turn.is_lazy) {
    // The program may have begun and ended lazy execution itself.
    if (!lazy::has_begun()) begin_lazy(turn);
    const lazy::Session::Progress now = lazy::Session::of_this_thread().progress();
    record_.add(turn.last, now);
    record_.end_iteration(now);
    if (turn.stage == Stage::co_executed) watch(turn.last, now);
    turn.last = now;
  }
  if (turn.stage != stage_) return false;
  return stage_ == Stage::co_executed || turn.iterations < iterations_of_turn();
}

bool CoExecution::end(Turn& turn, bool tells) {
  if (turn.stage != Stage::co_executed) --undecided;
  turn.is_open = false;
  if (turn.is_lazy) {
    const bool has_ended = ends();
    if (std::exchange(turn.chooses, false)) has_chooser_ = false;
    turn.recording.reset();
    const lazy::Session::Progress now = lazy::Session::of_this_thread().progress();
    record_.add(turn.last, now);
    turn.last = now;
    if (!has_ended) return false;
  }
  const double seconds = steady_seconds() - turn.start;
  const double used = turn.used == 0 ? 0 : processor_milliseconds() - turn.used;
  pay(turn, used);
  if (tells && turn.iterations > 0 && turn.stage == stage_) decide(turn, seconds, used);
  return true;
}

// ---- The policy -------------------------------------------------------------------------------

int CoExecution::iterations_of_turn() const {
  return kind_ == Kind::loop ? policy::kIterationsOfTurn : 1;
}

bool CoExecution::is_next_lazy() const {
  return stage_ == Stage::warming || stage_ == Stage::co_executed ||
         (stage_ == Stage::comparing && !test_.next_is_old());
}

void CoExecution::enter(Stage stage, int poor) {
  stage_ = stage;
  calls_ = 0;
  poor_ = poor;
  why_not_ = {};
  if (stage == Stage::looking) seconds_ = used_ = 0;
  if (stage == Stage::comparing) {
    test_ = {};
    settling_ = 0;
  }
  if (stage == Stage::co_executed) watched_ = {};
}

void CoExecution::give_up(std::string_view why) {
  enter(Stage::eager);
  why_not_ = why;
  rest_ = 0;
  if (on_account_ && conversion_account() != nullptr) conversion_account()->failed(spent_);
}

/// A loop may fill a buffer before it trains.
void CoExecution::give_up_for_now(std::string_view why) {
  give_up(why);
  rest_ = std::max(policy::kLeastRest, 2 * total_);
}

void CoExecution::decide(const Turn& turn, double seconds, double used) {
  calls_ += turn.iterations;
  switch (turn.stage) {
    case Stage::looking:
      return decide_after_look(turn, seconds, used);
    case Stage::warming:
      return decide_after_warming(turn);
    case Stage::comparing:
      return compare(turn, seconds);
    default:
      return;
  }
}

void CoExecution::decide_after_look(const Turn& turn, double seconds, double used) {
  seconds_ += seconds;
  used_ += used;
  if (calls_ < policy::kProfiledRuns) return;
  if (speculate::times_decide && seconds_ < calls_ * policy::kShortestCoExecutedCall)
    return give_up_for_now(kind_ == Kind::loop ? "its iterations are too short"
                                               : "its calls are too short");
  used_by_call_ = used_ / calls_;
  // What most of the time of something larger goes to is no better than that.
  if (speculate::times_decide && turn.around != nullptr &&
      2 * used_by_call_ > turn.around->used_by_call_)
    return give_up(turn.around->why_not_);
  if (!is_covered(/*begins=*/true)) return;
  enter(Stage::warming, poor_);
}

/// The first calls run at once, to learn the sizes of results.
void CoExecution::decide_after_warming(const Turn& turn) {
  const lazy::Session::Progress &before = turn.before, &now = turn.last;
  const uint64_t noted = now.noted - before.noted;
  const uint64_t fewest = policy::kFewestNotedCalls * static_cast<uint64_t>(turn.iterations);
  if (calls_ > policy::kProfiledRuns + iterations_of_turn() && noted < fewest)
    return give_up_for_now("it calls few operators");
  if (noted >= fewest && is_mostly_in_graphs(noted, now.in_graphs - before.in_graphs))
    return enter(speculate::times_decide ? Stage::comparing : Stage::co_executed);
  // Graphs on their way are worth waiting for, unless each iteration asks for others; the more it
  // asks for, the more is spent on what will not come again.
  const uint64_t news = now.structures - before.structures;
  const auto iterations = static_cast<uint64_t>(turn.iterations);
  if (news > kManyNews * iterations)
    poor_ += 2 * turn.iterations;
  else if (now.waited == before.waited || news > iterations || calls_ > policy::kMostPatientCalls)
    poor_ += turn.iterations;
  // What is pending beyond an iteration comes again only with the next turn.
  if (poor_ >= policy::kMostWarmingCalls * (kind_ == Kind::loop ? 2 : 1))
    return give_up(kind_ == Kind::loop ? "its operators differ from iteration to iteration"
                                       : "its operators differ from call to call");
  // More was spent on graphs than the account covers: eager execution goes on until it does again.
  if (!is_covered(/*begins=*/false)) enter(Stage::looking, poor_);
}

/// A program with several paths has graphs for some of them only, when most operators run in graphs
/// for the first time. What it will gain is seen when the others have theirs.
void CoExecution::compare(const Turn& turn, double seconds) {
  // It waited, or another thread's turn has ended before.
  if (turn.is_lazy == test_.next_is_old()) return;
  if (turn.is_lazy && is_settling(turn.before, turn.last) && ++settling_ <= kMostSettlingTurns)
    return;
  test_.add(seconds / turn.iterations);
  if (test_.verdict() == AbTest::Verdict::kept) enter(Stage::co_executed);
  if (test_.verdict() == AbTest::Verdict::given_up) give_up("eager execution is faster");
}

/// Of one that is decided: if its operators no longer run in graphs, it is decided anew.
void CoExecution::watch(const lazy::Session::Progress& before, const lazy::Session::Progress& now) {
  if (on_account_ && conversion_account() != nullptr && test_.has_both())
    conversion_account()->save(eager_milliseconds() - lazy_milliseconds());
  watched_.noted += now.noted - before.noted;
  watched_.in_graphs += now.in_graphs - before.in_graphs;
  watched_.waited += now.waited - before.waited;
  if (++calls_ < policy::kMostWarmingCalls) return;
  const bool is_as_before =
      watched_.waited > 0 || is_mostly_in_graphs(watched_.noted, watched_.in_graphs);
  enter(is_as_before ? Stage::co_executed : Stage::warming);
}

/// `begins`: with the cost of a first graph.
bool CoExecution::is_covered(bool begins) const {
  const ConversionAccount* const paying = on_account_ ? conversion_account() : nullptr;
  if (paying == nullptr) return true;
  const double cost = begins ? paying->estimate(std::nullopt) : 0;
  return paying->covers(cost, processor_milliseconds(), kHopefulShare * own_);
}

/// What turns took beyond what they take eagerly was spent on graphs: in lazy iterations, or behind
/// eager ones, for those before. One that took less takes back what chance had added.
void CoExecution::pay(const Turn& turn, double used) {
  own_ += used;
  if (turn.stage != Stage::warming && turn.stage != Stage::comparing) return;
  const double spent = std::max(used - used_by_call_ * turn.iterations, -spent_);
  spent_ += spent;
  spend_on_conversion(spent);
}

bool CoExecution::is_any_undecided() { return undecided != 0; }

std::string_view CoExecution::state() const {
  switch (stage_) {
    case Stage::co_executed:
      return "co-executed";
    case Stage::eager:
      return "eager";
    default:
      return "undecided";
  }
}

}  // namespace janus::bind
