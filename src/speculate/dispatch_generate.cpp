// How the dispatcher makes a graph for a call: in general first, then for its very values; within a
// budget of time; looking ahead while kernels compile.
#include "speculate/dispatch.h"

#include <algorithm>
#include <optional>
#include <variant>

#include "base/check.h"
#include "base/options.h"
#include "base/thread_time.h"
#include "base/time_budget.h"
#include "base/timeline.h"
#include "graph/cost.h"
#include "graph/op.h"
#include "graph/run_time_symbols.h"
#include "ops/list.h"
#include "python/gc_pause.h"
#include "python/held_signals.h"
#include "speculate/hooks.h"
#include "speculate/reason_lifetime.h"

namespace janus::speculate {
namespace {

/// Tells the processor time of a scope at its end, in milliseconds.
template <class Told>
class Spending {
 public:
  explicit Spending(Told told) : told_(std::move(told)), start_(thread_seconds()) {}
  ~Spending() { told_((thread_seconds() - start_) * 1e3); }
  Spending(const Spending&) = delete;
  Spending& operator=(const Spending&) = delete;

 private:
  Told told_;
  double start_;
};

/// Whether a switch makes inputs of values that have not varied.
bool generalises() {
  return options().is_disabled("specialise_shapes") || options().is_disabled("specialise_numbers");
}

struct TensorWork {
  double views = 0;  ///< what it takes, in views (graph/cost.h)
  size_t operators = 0;
};

/// What is computed with tensors: with little of it Python is as quick. An operator with blocks, or
/// one that stands for a whole backward pass, is enough by itself.
TensorWork tensor_work(const graph::Graph& graph) {
  constexpr double kEnough = 1000;
  TensorWork work;
  graph::for_each_node(graph.body(), [&](const graph::Node& node) {
    const graph::Role role = node.op->role;
    if (role == graph::Role::state || role == graph::Role::constant || role == graph::Role::size)
      return;
    const auto is_tensor = [](const graph::Value* each) { return each->type.is_tensor(); };
    if (std::ranges::any_of(node.outputs, is_tensor) ||
        std::ranges::any_of(node.inputs, is_tensor)) {
      work.views += graph::call_cost(node);
      ++work.operators;
    }
    if (node.op == &op::gradient || !node.blocks.empty()) work.views += kEnough;
  });
  return work;
}

/// The number of operators of a graph, and the top-level statement that most of them come from.
struct Largest {
  size_t operations = 0;
  graph::SourceSpan span = {};
  int statement = -1;  ///< known only of a run of statements
};

Largest largest_statement(const graph::Graph& graph, const Call& call) {
  Largest largest;
  if (call.tree == nullptr || call.tree->file == nullptr) return largest;
  std::map<int, size_t> at_line;
  graph::for_each_node(graph.body(), [&](const graph::Node& node) {
    ++largest.operations;
    if (node.span.known() && *node.span.file == *call.tree->file) ++at_line[node.span.line];
  });
  size_t most = 0;
  for (size_t i = 0; i < call.tree->body.size(); ++i) {
    const graph::SourceSpan& span = call.tree->body[i]->span;
    size_t count = 0;
    for (auto line = at_line.lower_bound(span.line);
         line != at_line.end() && line->first <= span.end_line; ++line)
      count += line->second;
    if (count <= most) continue;
    most = count;
    largest.span = span;
    if (call.function == nullptr) largest.statement = static_cast<int>(i);
  }
  return largest;
}

/// The budget of a graph, in seconds of processor time; nullopt: no limit.
std::optional<double> time_for_graph(bool is_part) {
  if (!times_decide && !is_work_simulated()) return std::nullopt;
  const auto seconds = static_cast<double>(most_seconds_of_generation);
  return is_part ? seconds / 2 : seconds;
}

class Flag {
 public:
  explicit Flag(bool& flag) : flag_(flag) { flag_ = true; }
  ~Flag() { flag_ = false; }
  Flag(const Flag&) = delete;
  Flag& operator=(const Flag&) = delete;

 private:
  bool& flag_;
};

}  // namespace

/// While a graph is generated: no other one is, nothing is pending, no garbage collection begins,
/// no signal is handled, and somebody pays.
class Dispatcher::Generating {
 public:
  Generating(Dispatcher& dispatcher, void (RegionAccount::*spend)(double),
             std::optional<double> seconds)
      : flag_(dispatcher.generating_),
        spending_([&dispatcher, spend](double spent) { (dispatcher.account.*spend)(spent); }),
        budget_(seconds) {}

 private:
  const std::shared_ptr<void> ordinary_ = tensor_access().ordinary_execution();
  const Flag flag_;
  const python::GcPause pause_;
  const python::HeldSignals signals_;
  const Spending<std::function<void(double)>> spending_;
  const TimeBudget budget_;
};

/// While it lives, what the guards of the entry ask for is observed too.
class Dispatcher::Outdated {
 public:
  Outdated(Dispatcher& dispatcher, std::shared_ptr<Entry> entry) : dispatcher_(dispatcher) {
    dispatcher_.outdated_ = std::move(entry);
  }
  ~Outdated() { dispatcher_.outdated_ = nullptr; }
  Outdated(const Outdated&) = delete;
  Outdated& operator=(const Outdated&) = delete;

 private:
  Dispatcher& dispatcher_;
};

Dispatcher::Attempt Dispatcher::look_ahead(const Call& call, const Environment& environment,
                                           bool& committed) {
  if (counters_.generated != 1 || looked_ahead_ == policy::kCallsLookedAhead) return {};
  ++looked_ahead_;
  const std::shared_ptr<Entry> first = compiling_;
  const std::shared_ptr<void> ordinary = tensor_access().ordinary_execution();
  std::vector<python::Object> captured;
  const auto mismatch = first->guards().check(call, environment, captured);
  if (!mismatch || mismatch->dead || mismatch->path.empty()) return {};
  const Outdated outdated(*this, first);
  if (!observe(call, mismatch->path)) return {};
  ++counters_.relaxations;
  std::optional<Reason> refusal;
  const std::shared_ptr<Entry> general = generate_general(call, refusal);
  if (general == nullptr || compiling_ != first ||
      general->guards().check(call, environment, captured))
    return {};  // the first graph still serves calls like those before
  log("speculate", cat(name_, ": the graph is outdated before its kernels are compiled"));
  account.spend_on_graph(first->milliseconds_in_background());
  account.release_reserve();
  ++abandoned_;
  return put_to_use(general, {}, std::move(captured), call, committed);
}

Dispatcher::Attempt Dispatcher::generate_and_run(const Call& call, const Environment& environment,
                                                 const Outcomes& chosen, bool& committed) {
  const std::shared_ptr<Entry> before = compiling_;
  const std::shared_ptr<void> ordinary = tensor_access().ordinary_execution();
  if (generating_ || compiling_ != before) return {};  // another thread ran while this one waited
  std::shared_ptr<Entry> entry = generate(call, chosen);
  if (!entry) return {};
  std::vector<python::Object> captured;
  auto mismatch = entry->guards().check(call, environment, captured);
  if (mismatch) {  // imports of torch may have changed the filters of warnings meanwhile
    entry = generate(call, chosen);
    if (!entry) return {};
    mismatch = entry->guards().check(call, environment, captured);
  }
  if (mismatch)
    throw InternalError(cat("the assumptions do not hold for the call that they were made from: ",
                            mismatch->reason.details));
  return put_to_use(entry, chosen, std::move(captured), call, committed);
}

Dispatcher::Attempt Dispatcher::put_to_use(const std::shared_ptr<Entry>& entry,
                                           const Outcomes& chosen,
                                           std::vector<python::Object> captured, const Call& call,
                                           bool& committed) {
  ++counters_.generated;
  entry->chosen = chosen;
  entry->guards().visit_values(
      call, [&](const std::string& path, PyObject* object) { observations_.see(path, object); });
  compiling_ = entry;
  if (!admit()) {
    account.reserve_for_kernels();
    reach("compiling");
    return {};
  }
  Attempt attempt;
  Outcomes unused;
  const Result result = run_entry(entry, std::move(captured), attempt.result, committed, unused);
  reach("ready");  // not before the run, for which the guards have just held
  if (result == Result::left) {
    ++counters_.aborts;
    penalise(policy::kPenaltyOfAbort, "guards or operators inside the graph");
    return {};
  }
  attempt.ran = true;
  return attempt;
}

bool Dispatcher::admit() {
  const auto milliseconds = compiling_->compiled_in_background();
  if (!milliseconds) return false;
  durations_.compiling += *milliseconds;
  account.spend_on_graph(*milliseconds);
  account.complete_graph();
  ++news_;
  entries_.push_front(std::exchange(compiling_, nullptr));
  if (entries_.size() > policy::kMostEntries) entries_.pop_back();
  return true;
}

std::shared_ptr<Entry> Dispatcher::generate(const Call& call, const Outcomes& chosen) {
  reach("generating");
  account.begin_graph();
  const Generating generating(*this, &RegionAccount::spend_on_graph, time_for_graph(is_part));
  std::optional<Reason> reason;
  // If the general form can't be converted, makes a graph for these very values.
  for (const bool relaxed : {true, false}) {
    if (relaxed && !observations_.any_varies() && !generalises()) continue;
    if (!relaxed && reason && has_ever_new_numbers()) break;
    if (auto entry = generate_with(call, chosen, relaxed, reason)) return entry;
    log("speculate", cat(name_, relaxed ? " (with what varies): " : ": ", reason->describe()));
    const bool is_final = is_permanent(reason->code) || reason->code == ReasonCode::no_tensor_work;
    if (is_final || TimeBudget::is_spent()) break;
    if (relaxed && saw_tensor_) note(*reason);
  }
  // A second attempt would take as long, so the function is cut now, or stays in Python.
  if (TimeBudget::is_spent()) refusals_ = policy::kMostRefusals - 1;
  refused(*reason);
  return nullptr;
}

bool Dispatcher::may_probe() const {
  return !is_probed_ && counters_.profiled > 0 && counters_.generated == 0 &&
         account.covers_probe(counters_.calls);
}

void Dispatcher::probe(const Call& call) {
  const Generating generating(*this, &RegionAccount::spend_on_probe,
                              policy::kMillisecondsOfProbe / 1e3);
  const Outcomes none;
  Call wanted = call;
  wanted.chosen = &none;
  std::optional<Reason> reason;
  if (interpret(wanted, reason) || !is_lasting(reason->code)) {
    is_probed_ = true;
    return;
  }
  log("speculate", cat(name_, " is refused before its graph is paid: ", reason->describe()));
  refused(*reason);
}

std::shared_ptr<Entry> Dispatcher::generate_general(const Call& call,
                                                    std::optional<Reason>& refusal) {
  reach("generating");
  account.begin_graph();
  const Generating generating(*this, &RegionAccount::spend_on_graph, time_for_graph(is_part));
  return generate_with(call, {}, /*relaxed=*/true, refusal);
}

std::optional<Generated> Dispatcher::interpret(const Call& call, std::optional<Reason>& refusal) {
  auto paths = call.general ? path_facts(call) : decltype(path_facts(call))();
  Facts& facts = profiles().of(
      call.facts_key, call.tree == nullptr ? 0 : static_cast<size_t>(call.tree->fact_count));
  const double start = now();
  facts.paths.swap(paths);
  std::optional<std::variant<Generated, Reason>> outcome;
  try {
    outcome = generator()(call, profiles());
  } catch (...) {
    facts.paths.swap(paths);
    throw;
  }
  facts.paths.swap(paths);
  durations_.generating += now() - start;
  if (Timeline::is_kept()) Timeline::add("generate", name_, start / 1e3, steady_seconds());
  if (auto* generated = std::get_if<Generated>(&*outcome)) return std::move(*generated);
  refusal = std::get<Reason>(std::move(*outcome));
  return std::nullopt;
}

std::shared_ptr<Entry> Dispatcher::generate_with(const Call& call, const Outcomes& chosen,
                                                 bool relaxed, std::optional<Reason>& refusal) {
  Call wanted = call;
  wanted.chosen = &chosen;
  wanted.general = relaxed;
  std::optional<Generated> generated = interpret(wanted, refusal);
  if (!generated) {
    if (TimeBudget::is_spent()) return nullptr;
    if (relaxed && std::exchange(texts_are_inputs_, false) && observations_.texts_vary())
      return generate_with(wanted, chosen, relaxed, refusal);
    if (!relaxed || call.keeps_aliases || !observations_.aliases_vary()) return nullptr;
    wanted.keeps_aliases = true;
    return generate_with(wanted, chosen, relaxed, refusal);
  }
  const TensorWork work = tensor_work(generated->graph);
  if (work.views < options_.least_work) {
    const std::string few = cat(" but for ", work.operators, ", too few for a graph of their own");
    refusal = Reason{ReasonCode::no_tensor_work, work.operators == 0 ? name_ : name_ + few, {}};
    return nullptr;
  }
  const bool decides_sizes = !graph::symbols_given_in(generated->graph.body()).empty();
  std::shared_ptr<Entry> entry;
  const Largest largest = largest_statement(generated->graph, call);
  try {
    entry = Entry::make(std::move(*generated), call);
  } catch (const OutOfTime&) {
    refusal = Reason{ReasonCode::limit,
                     cat("making a graph takes too long: ", largest.operations,
                         " operators were not optimised within ", TimeBudget::seconds(), " s"),
                     largest.span, largest.statement};
    return nullptr;
  } catch (const UncertainCollective& error) {
    wanted.why_no_collectives = cat("before ", error.what(), " may end the run");
    return generate_with(wanted, chosen, relaxed, refusal);
  } catch (const graph::TypeError& error) {  // for instance, an operator has no gradient
    refusal = Reason{ReasonCode::autograd, error.what(), {}};
    if (!decides_sizes || call.keeps_sizes) return nullptr;
    wanted.keeps_sizes = true;
    return generate_with(wanted, chosen, relaxed, refusal);
  }
  durations_.optimising += entry->times().optimise;
  durations_.compiling += entry->times().compile;
  log("speculate", cat(name_, ": a graph with ", entry->guards().assumption_count(),
                       " assumptions was generated"));
  return entry;
}

std::map<std::string, ValueFact, std::less<>> Dispatcher::path_facts(const Call& call) const {
  std::map<std::string, ValueFact, std::less<>> facts;
  const auto add = [&](const std::string& path, PyObject* object) {
    observations_.add_fact(path, object, facts, texts_are_inputs_);
  };
  if (roots != nullptr)
    for (const auto& [path, object] : roots(call)) add(path, object);
  visit_values(call, add);
  return facts;
}

}  // namespace janus::speculate
