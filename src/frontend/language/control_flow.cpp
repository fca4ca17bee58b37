// Loops over known things are unrolled, tests that the graph computes are followed and guarded.
#include "frontend/language/control_flow.h"

#include <algorithm>

#include "base/policy.h"
#include "frontend/control/branches.h"
#include "frontend/control/counted.h"
#include "frontend/control/fork.h"
#include "frontend/control/loops.h"
#include "frontend/core/flags.h"
#include "frontend/core/operations.h"
#include "frontend/language/assignment.h"
#include "frontend/language/conditions.h"
#include "frontend/language/evaluation.h"
#include "frontend/language/generators.h"
#include "frontend/language/iterated.h"
#include "frontend/language/unrolling_forecast.h"
#include "frontend/objects/iteration.h"
#include "frontend/values/restart.h"
#include "frontend/values/truth.h"

namespace janus::frontend {

using python::Object;

Completion execute_return(Interpreter& interpreter, Value value) {
  Frame& frame = interpreter.frame();
  if (frame.returning == nullptr) {
    frame.returned = std::move(value);
    return Completion::return_;
  }
  auto& noted = frame.returning->values;
  noted["left"] = noted["returns"] = interpreter.boolean(true);
  noted["value"] = std::move(value);
  return Completion::return_;
}

namespace {

/// Whether all that the statement does is to raise an exception if something is wrong.
bool is_check(const syntax::If& statement) {
  return statement.orelse.empty() && !statement.body.empty() &&
         statement.body.back()->kind == syntax::StatementKind::Raise;
}

/// The outcome to assume of a check that no profile saw (in an `__init__`, for instance): nothing
/// is wrong.
Object assumed_outcome(const Frames& frames, const syntax::If& statement) {
  const speculate::NodeFact* seen = frames.fact(statement.fact);
  const bool is_seen = seen != nullptr && (seen->taken > 0 || seen->not_taken > 0);
  return !is_seen && is_check(statement) ? Object::borrow(Py_False) : Object();
}

}  // namespace

Completion execute_if(Interpreter& interpreter, const syntax::If& statement) {
  int fact = statement.fact;
  Truth truth = evaluate_truth(interpreter, *statement.test, fact);
  auto body = [&] { return execute(interpreter, statement.body); };
  auto orelse = [&] { return execute(interpreter, statement.orelse); };
  const auto both = [&] {
    return is_check(statement) ? takes_both(interpreter, fact)
                               : takes_both(interpreter, fact, truth);
  };
  if (!truth.known && both()) return choose_statements(interpreter, truth, fact, body, orelse);
  if (!truth.known && !truth.example) truth.example = assumed_outcome(interpreter, statement);
  bool side = truth.known ? *truth.known : interpreter.follow(truth.flag, truth.example, fact);
  return side ? body() : orelse();
}

namespace {

/// The innermost loop while its iterations are interpreted; null if they are unrolled.
class OuterLoop {
 public:
  OuterLoop(Frames& frames, std::shared_ptr<Variables> loop)
      : frame_(frames.frame()), outer_(std::exchange(frame_.loop, std::move(loop))) {}
  ~OuterLoop() { frame_.loop = std::move(outer_); }
  OuterLoop(const OuterLoop&) = delete;
  OuterLoop& operator=(const OuterLoop&) = delete;

 private:
  Frame& frame_;
  std::shared_ptr<Variables> outer_;
};

/// Ends an iteration of an unrolled loop. Sides that went on with `continue` are merged here. Gives
/// whether the loop is left.
bool leaves_loop(Frames& frames, size_t forks, Completion completion) {
  if (completion != Completion::normal && completion != Completion::continue_) return true;
  close_forks_that(frames, forks, Completion::continue_);
  return false;
}

/// Follows a loop whose body or `else` ended with `completion`. Sides that left the loop by `break`
/// are merged here. Only sides that leave more than the loop stay open: `break` and `continue` mean
/// the next outer loop from here on.
void end_loop(Frames& frames, size_t forks, Completion completion) {
  if (completion == Completion::normal) close_forks_that(frames, forks, Completion::break_);
  const auto& open = frames.frame().forks;
  for (size_t i = forks; i < open.size(); ++i)
    if (open[i]->other_completion() != Completion::return_ &&
        open[i]->other_completion() != Completion::raise_)
      throw CannotMerge{*open[i]->test(), "only one side leaves the loop"};
}

Completion end_iterations(Frames& frames, size_t forks, Completion completion) {
  if (completion == Completion::break_) completion = Completion::normal;
  end_loop(frames, forks, completion);
  return completion;
}

Completion execute_else(Interpreter& interpreter, size_t forks, const syntax::Body& body) {
  Completion completion = execute(interpreter, body);
  end_loop(interpreter, forks, completion);
  return completion;
}

/// The fewest iterations that the loop was seen with; -1: it was not seen.
int64_t least_iterations(Interpreter& interpreter, int fact) {
  const speculate::NodeFact* seen = interpreter.fact(fact);
  return seen == nullptr ? -1 : seen->least_trips;
}

/// Unrolls a loop of about so many iterations (-1: unknown); nothing where it ended by itself.
std::optional<Completion> unroll(
    Interpreter& interpreter, size_t forks, int64_t expected,
    const std::function<bool(int64_t)>& begins_iteration, const syntax::Body& body,
    const std::function<void()>& finish = [] {}) {
  const OuterLoop outer(interpreter, nullptr);
  UnrollingForecast forecast(interpreter, expected);
  for (int64_t trips = 0; begins_iteration(trips); ++trips) {
    if (trips >= Interpreter::most_rounds())
      interpreter.refuse(ReasonCode::limit, cat("a loop of more than ", Interpreter::most_rounds(),
                                                " iterations would be unrolled"));
    Completion completion = execute(interpreter, body);
    forecast.end_iteration(trips);
    if (!leaves_loop(interpreter, forks, completion)) continue;
    finish();
    return end_iterations(interpreter, forks, completion);
  }
  return std::nullopt;
}

/// The test of a loop goes both ways in every run. A test that only the run knows can be followed
/// if all profiled runs had the same number of iterations.
bool loop_test(Interpreter& interpreter, const syntax::While& loop, int64_t trips) {
  int fact = loop.fact;
  Truth truth = evaluate_truth(interpreter, *loop.test, fact);
  if (truth.known) return *truth.known;
  if (truth.example) return interpreter.follow(truth.flag, truth.example, fact);
  const speculate::NodeFact* seen = interpreter.fact(loop.fact);
  bool is_stable = seen != nullptr && seen->most_trips >= 0 &&
                   seen->least_trips == seen->most_trips &&
                   seen->most_trips <= policy::kMostGuardedTrips;
  if (!is_stable) {
    const CannotMerge* why = interpreter.followed({interpreter.frame().code->facts_key, loop.fact});
    interpreter.refuse(ReasonCode::dynamic_control,
                       why == nullptr ? std::string("the test of a while loop")
                                      : cat("the test of a while loop: ", why->why));
  }
  bool goes_on = trips < seen->most_trips;
  return interpreter.follow(truth.flag, Object::borrow(goes_on ? Py_True : Py_False), fact);
}

/// Marks the loop of the graph whose body is interpreted.
class ReturningLoop {
 public:
  ReturningLoop(Interpreter& interpreter, std::shared_ptr<Variables> loop)
      : frame_(interpreter.frame()),
        outer_(std::exchange(frame_.returning, std::move(loop))),
        returned_(std::exchange(frame_.returned, interpreter.none())) {}
  ~ReturningLoop() {
    frame_.returning = std::move(outer_);
    frame_.returned = std::move(returned_);
  }
  ReturningLoop(const ReturningLoop&) = delete;
  ReturningLoop& operator=(const ReturningLoop&) = delete;

 private:
  Frame& frame_;
  std::shared_ptr<Variables> outer_;
  Value returned_;
};

/// What follows a loop that may have noted a `return`.
Completion after_iterations(Interpreter& interpreter, int fact, const Variables& state,
                            bool forever, const std::function<Completion()>& otherwise) {
  Truth returns = truth_of(interpreter, state.values.at("returns"));
  Truth breaks = truth_of(interpreter, state.values.at("breaks"));
  if (forever && breaks.known && !*breaks.known) returns = {.known = true};
  const Value value = state.values.at("value");
  auto give = [&] { return execute_return(interpreter, value); };
  if (returns.known) return *returns.known ? give() : otherwise();
  return choose_statements(interpreter, returns, fact, give, otherwise);
}

/// A loop as a `while` node; `break` and `return` are noted in variables that the test asks first.
/// `iterations_before`: how many iterations were unrolled in front of it.
Completion graph_loop(Interpreter& interpreter, int fact, const std::function<Truth()>& test,
                      const std::function<Completion()>& iteration, const syntax::Body& orelse,
                      bool forever, const std::function<Value()>& iterations = {},
                      int64_t iterations_before = 0) {
  auto state = std::make_shared<Variables>();
  for (const char* flag : {"left", "breaks", "returns"})
    state->values[flag] = interpreter.boolean(false);
  state->values["value"] = std::make_shared<Undefined>();
  auto stays = [&]() -> Truth {
    Truth left = truth_of(interpreter, state->values["left"]);
    if (left.known) return *left.known ? Truth{.known = false} : test();
    Value result = choose(
        interpreter, left, fact, [&] { return interpreter.boolean(false); },
        [&] { return flag_value(interpreter, test()); });
    return truth_of(interpreter, result);
  };
  {
    const OuterLoop outer(interpreter, state);
    const ReturningLoop returning(interpreter, state);
    const auto count = [&]() -> Value {
      Truth left = truth_of(interpreter, state->values["left"]);
      return iterations && left.known && !*left.known ? iterations() : nullptr;
    };
    loop_in_graph(interpreter, fact,
                  {.test = stays,
                   .iteration = iteration,
                   .iterations = count,
                   .may_be_empty = iterations_before > 1,
                   .is_rest = iterations_before == 1});
  }
  interpreter.mark(speculate::LineMark::Kind::graph, "a loop in the graph");
  auto otherwise = [&]() -> Completion {
    if (orelse.empty()) return Completion::normal;
    Truth left = truth_of(interpreter, state->values["left"]);
    auto run_else = [&] { return execute(interpreter, orelse); };
    if (left.known) return *left.known ? Completion::normal : run_else();
    return choose_statements(interpreter, left, fact, [] { return Completion::normal; }, run_else);
  };
  return after_iterations(interpreter, fact, *state, forever, otherwise);
}

/// Whether these are many more iterations than any run had.
bool goes_on_unseen(const speculate::NodeFact* seen, int64_t trips) {
  return seen != nullptr && seen->most_trips >= 0 &&
         trips > seen->most_trips + policy::kMostUnseenTrips;
}

/// Unrolls the loop as long as its test is known, if the number of iterations varies: `while not
/// done` is known in the first iteration only. The remaining iterations are a loop of the graph.
Completion unroll_while(Interpreter& interpreter, const syntax::While& loop,
                        const std::function<Truth()>& test) {
  size_t forks = interpreter.frame().forks.size();
  const bool forever = loop.test->kind == syntax::ExpressionKind::Constant;
  const bool varies = !forever && iterations_vary(interpreter, loop.fact);
  const speculate::NodeFact* seen = interpreter.fact(loop.fact);
  std::optional<int64_t> known_iterations;
  auto begins_iteration = [&](int64_t trips) {
    // The loop may never end: its only exit is a branch that is always followed the other way.
    if (forever && seen != nullptr && trips > seen->most_trips)
      interpreter.refuse(ReasonCode::dynamic_control,
                         "the iterations of a loop that ends inside its body");
    // Nor may this one: sizes that the run decides count as more than one.
    if (goes_on_unseen(seen, trips))
      interpreter.refuse(ReasonCode::dynamic_control,
                         "the iterations of a loop that a size of the run ends");
    if (varies && !peek(interpreter, loop.fact, test).known) {
      known_iterations = trips;
      return false;
    }
    return loop_test(interpreter, loop, trips);
  };
  const int64_t expected = varies ? -1 : least_iterations(interpreter, loop.fact);
  if (auto left = unroll(interpreter, forks, expected, begins_iteration, loop.body)) return *left;
  if (!known_iterations) return execute_else(interpreter, forks, loop.orelse);
  const auto iteration = [&] { return execute(interpreter, loop.body); };
  const Completion completion = graph_loop(interpreter, loop.fact, test, iteration, loop.orelse,
                                           /*forever=*/false, {}, *known_iterations);
  end_loop(interpreter, forks, completion);
  return completion;
}

/// Whether the expression is a variable that holds a list made in the run, or the length of one.
bool asks_for_list(const Frames& frames, const syntax::Expression& expression) {
  if (const auto* comparison = syntax::try_as<syntax::Compare>(&expression))
    return asks_for_list(frames, *comparison->left);
  if (const auto* call = syntax::try_as<syntax::Call>(&expression))
    return call->args.size() == 1 && asks_for_list(frames, *call->args[0]);
  const auto* name = syntax::try_as<syntax::Name>(&expression);
  if (name == nullptr) return false;
  const auto& values = frames.frame().variables->values;
  auto variable = values.find(name->id);
  const auto* list = variable == values.end() ? nullptr : as<Sequence>(variable->second);
  return list != nullptr && list->is_list && list->source == nullptr;
}

}  // namespace

Completion execute_while(Interpreter& interpreter, const syntax::While& loop) {
  auto test = [&] {
    int fact = loop.fact;
    return evaluate_truth(interpreter, *loop.test, fact);
  };
  // `while True` ends by a branch in its body, and the length of a list is soon unknown. Any other
  // loop is unrolled as long as its test is known.
  bool forever = loop.test->kind == syntax::ExpressionKind::Constant;
  const bool varies = iterations_vary(interpreter, loop.fact);
  if (!varies || (!forever && !asks_for_list(interpreter, *loop.test) &&
                  peek(interpreter, loop.fact, test).known))
    return unroll_while(interpreter, loop, test);
  return graph_loop(
      interpreter, loop.fact, test, [&] { return execute(interpreter, loop.body); }, loop.orelse,
      forever);
}

namespace {

Completion unroll_for(Interpreter& interpreter, const syntax::For& loop, const Value& iterable) {
  std::shared_ptr<Iterator> iterator = iterate(interpreter, iterable);
  size_t forks = interpreter.frame().forks.size();
  int64_t iterations = 0;
  auto begins_iteration = [&](int64_t trips) {
    interpreter.at(loop);
    Value element = iterator->next();
    if (element == nullptr) {
      iterator.reset();
      return false;
    }
    iterations = trips + 1;
    assign(interpreter, *loop.target, element);
    return true;
  };
  // How far it was taken on a side that leaves the loop, nobody sees but who else holds it.
  auto finish = [&] { iterator.reset(); };
  const int64_t expected = least_iterations(interpreter, loop.fact);
  if (auto left = unroll(interpreter, forks, expected, begins_iteration, loop.body, finish))
    return *left;
  interpreter.at(loop);
  interpreter.mark(speculate::LineMark::Kind::constant, cat("unrolled ", iterations, " times"));
  return execute_else(interpreter, forks, loop.orelse);
}

Completion for_in_graph(Interpreter& interpreter, const syntax::For& loop, const Counted& counted) {
  Positions positions(interpreter, counted);
  auto test = [&] {
    interpreter.at(loop);
    return positions.has_next();
  };
  auto iteration = [&] {
    interpreter.at(loop);
    assign(interpreter, *loop.target, positions.next());
    return execute(interpreter, loop.body);
  };
  return graph_loop(interpreter, loop.fact, test, iteration, loop.orelse, false,
                    [&] { return iterations_of(interpreter, counted); });
}

/// Whether each iteration of the loop runs to its end or to a `continue`.
bool is_left_by_none(const syntax::Body& body, bool is_own = true) {
  using syntax::StatementKind;
  return std::ranges::all_of(body, [&](const syntax::Statement* statement) {
    const auto are = [&](const syntax::Body& part, bool own) { return is_left_by_none(part, own); };
    switch (statement->kind) {
      case StatementKind::Return:
        return false;
      case StatementKind::Break:
        return !is_own;
      case StatementKind::If: {
        const auto& node = syntax::as<syntax::If>(statement);
        return are(node.body, is_own) && are(node.orelse, is_own);
      }
      case StatementKind::For: {
        const auto& node = syntax::as<syntax::For>(statement);
        return are(node.body, false) && are(node.orelse, is_own);
      }
      case StatementKind::While: {
        const auto& node = syntax::as<syntax::While>(statement);
        return are(node.body, false) && are(node.orelse, is_own);
      }
      case StatementKind::With:
        return are(syntax::as<syntax::With>(statement).body, is_own);
      case StatementKind::Try:
      case StatementKind::Match:
        return false;
      default:
        return true;
    }
  });
}

/// A loop over a generator function of the program: the body runs at each `yield`.
bool iterates_over_yields(Interpreter& interpreter, const syntax::For& loop) {
  if (!loop.orelse.empty() || !is_left_by_none(loop.body)) return false;
  const auto in_iteration = [&](const Value& value) {
    interpreter.at(loop);
    const auto& forks = interpreter.frame().forks;
    const size_t before = forks.size();
    assign(interpreter, *loop.target, value);
    execute(interpreter, loop.body);
    while (forks.size() > before)
      close_forks_that(interpreter, before, forks.back()->other_completion());
  };
  return for_each_yielded(interpreter, *loop.iter, in_iteration) != nullptr;
}

/// The iterable of an unrolled loop. A varying number of iterations is not reported as the reason
/// for a loop that would be in the graph but for something else.
Value evaluate_unrolled(Interpreter& interpreter, const syntax::For& loop) {
  try {
    return evaluate_iterable(interpreter, *loop.iter);
  } catch (const Refusal& refusal) {
    const CannotMerge* why = interpreter.followed({interpreter.frame().code->facts_key, loop.fact});
    if (refusal.reason.code != ReasonCode::dynamic_value || why == nullptr || why->why.empty())
      throw;
    interpreter.refuse(ReasonCode::dynamic_control, cat("the iterations of a loop: ", why->why));
  }
}

}  // namespace

Completion execute_for(Interpreter& interpreter, const syntax::For& loop) {
  if (iterates_over_yields(interpreter, loop)) return Completion::normal;
  if (!iterations_vary(interpreter, loop.fact)) {
    Value iterable = evaluate_unrolled(interpreter, loop);
    interpreter.at(loop);
    if (const auto* object = as<RuntimeObject>(iterable))
      iterable = expected_elements(interpreter, *object, loop.fact, loop.iter->fact);
    return unroll_for(interpreter, loop, iterable);
  }
  TestKey key{interpreter.frame().code->facts_key, loop.fact};
  Iterated iterated = evaluate_iterated(interpreter, *loop.iter, key);
  interpreter.at(loop);
  if (iterated.counted && !is_left_by_none(loop.body)) *iterated.counted->partly = true;
  return iterated.counted ? for_in_graph(interpreter, loop, *iterated.counted)
                          : unroll_for(interpreter, loop, iterated.value);
}

}  // namespace janus::frontend
