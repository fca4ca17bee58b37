#include "speculate/entry.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string_view>
#include <unordered_map>

#include "base/check.h"
#include "base/mutation.h"
#include "base/options.h"
#include "base/policy.h"
#include "base/steady_time.h"
#include "base/timeline.h"
#include "execute/values/container.h"
#include "graph/annotated_text.h"
#include "graph/functions.h"
#include "graph/text.h"
#include "kernels/compilation.h"
#include "ops/collectives.h"
#include "ops/list.h"
#include "ops/promotion.h"
#include "passes/analysis/certain.h"
#include "passes/pipeline/pipeline.h"
#include "python/version.h"
#include "speculate/deferred_warnings.h"
#include "speculate/describe.h"
#include "speculate/object_heap.h"

namespace janus::speculate {
namespace {

execute::Library* library_of_process = nullptr;

/// The cells that a graph reads.
std::set<std::string> cells_read(const graph::Graph& graph) {
  std::set<std::string> names;
  graph::for_each_node(graph.body(), [&](const graph::Node& node) {
    if (node.op->role == graph::Role::state) names.insert(node.attributes.get<std::string>("cell"));
  });
  return names;
}

/// The captured sources, each once, and their positions.
class Captures {
 public:
  size_t of(const Source* source) {
    const auto [found, added] = index_.try_emplace(source, sources_.size());
    if (added) sources_.push_back(source);
    return found->second;
  }
  const std::vector<const Source*>& sources() const { return sources_; }

 private:
  std::map<const Source*, size_t> index_;
  std::vector<const Source*> sources_;
};

execute::Slot number_slot(PyObject* object) {
  using execute::Slot;
  if (object == Py_None) return Slot::none();
  if (PyBool_Check(object)) return Slot::of(object == Py_True);
  if (PyFloat_CheckExact(object)) return Slot::of(PyFloat_AS_DOUBLE(object));
  if (PyLong_CheckExact(object)) {
    const int64_t number = PyLong_AsLongLong(object);
    if (number == -1 && PyErr_Occurred() != nullptr) throw python::ErrorSet();
    return Slot::of(number);
  }
  if (tensor_access().is_tensor(object)) return tensor_access().to_slot(object);
  return Slot::borrow_object(object);
}

/// Whether the write stores the object that is there already, by the guards: `state["buffer"] =
/// buffer` after an in-place update. No other write may use that key.
bool changes_nothing(const HeapWrite& write, const std::vector<HeapWrite>& all) {
  const auto puts_back = [](const HeapWrite& each) {
    return each.kind == HeapWrite::Kind::item && !each.deletes && each.key &&
           each.value.kind == Template::Kind::source && each.value.source != nullptr &&
           each.value.source->kind == Source::Kind::item && each.value.source->base == each.owner &&
           equal_constants(each.value.source->key.get(), each.key.get());
  };
  return puts_back(write) && std::all_of(all.begin(), all.end(), [&](const HeapWrite& other) {
           const bool same_key = other.key && equal_constants(other.key.get(), write.key.get());
           return puts_back(other) || (other.kind != HeapWrite::Kind::clear && !same_key);
         });
}

/// The largest number of Python frames that one call of a function of the graph stands for.
int64_t frames_of_call(const graph::Graph& graph) {
  int64_t frames = 0;
  for (const graph::Node* node : graph.body().nodes)
    if (graph::is_function(*node))
      frames = std::max(frames, node->attributes.get_or<int64_t>("frames", 1));
  return frames;
}

constexpr const char* kCapsule = "torchjanus.entry";

void free_weak_entry(PyObject* capsule) {
  delete static_cast<std::weak_ptr<Entry>*>(PyCapsule_GetPointer(capsule, kCapsule));
}

}  // namespace

void retire_entry(Entry& entry) { entry.retire(); }

namespace {

/// Called with the weak reference when an object dies that the guards need.
PyObject* on_object_death(PyObject* capsule, PyObject* /*weak reference*/) {
  auto* entry = static_cast<std::weak_ptr<Entry>*>(PyCapsule_GetPointer(capsule, kCapsule));
  if (entry == nullptr) return nullptr;
  if (const auto alive = entry->lock()) retire_entry(*alive);
  Py_RETURN_NONE;
}

PyMethodDef on_object_death_method = {"on_object_death", on_object_death, METH_O, nullptr};

/// The callback of these weak references. It holds the entry by weak reference.
python::Object death_callback(const std::shared_ptr<Entry>& self) {
  auto weak = std::make_unique<std::weak_ptr<Entry>>(self);
  const python::Object capsule =
      python::check(PyCapsule_New(weak.get(), kCapsule, free_weak_entry));
  weak.release();
  return python::check(PyCFunction_New(&on_object_death_method, capsule.get()));
}

}  // namespace

void set_library(execute::Library* library) { library_of_process = library; }
execute::Library* library() { return library_of_process; }

double now() { return 1e3 * steady_seconds(); }

Entry::~Entry() = default;

/// Frees the memory of a graph that can't be entered again, or lets its last run do it. That may
/// kill another object that the guards need, and so call this again.
void Entry::retire() {
  if (retired_) return;
  retired_ = true;
  if (guards_) guards_->forget();
  if (running_ == 0) release();
}

void Entry::release() {
  program_.reset();
  compiling_.reset();
  differentiable_.reset();
  result_ = {};
  writes_.clear();
  effects_.clear();
}

std::shared_ptr<Entry> Entry::make(Generated generated, const Call& call) {
  TORCHJANUS_CHECK(library() != nullptr, "entry: no library of operators was set");
  const std::shared_ptr<Entry> entry(new Entry());
  graph::AnnotatedText printed = graph::print_annotated(generated.graph);
  entry->generated_text_ = std::move(printed.text);
  entry->generated_text_.shrink_to_fit();
  for (const graph::Node* node : printed.nodes)
    entry->generated_places_.push_back(node == nullptr ? graph::SourceSpan() : node->span);
  dump("generated.ir", entry->generated_text_);
  for (const graph::Value* value : generated.graph.inputs())
    entry->input_kinds_.push_back(value->type.kind);
  entry->result_count_ = generated.graph.results().size();
  const std::string graph_name = generated.graph.name();

  const double start = now();
  const ops::DefaultDtype scope(generated.environment.default_dtype);
  graph::Graph graph(generated.graph.name());
  if (generated.differentiable_results.empty()) {
    graph = std::move(generated.graph);
  } else {
    entry->differentiable_ = differentiation().prepare(generated);
    graph = entry->differentiable_->take_forward();
    entry->result_count_ = entry->differentiable_->result_count();
  }
  const auto sums =
      generated.is_shared_update ? passes::Sums::as_eager : passes::Sums::in_any_order;
  graph = passes::optimise(std::move(graph), nullptr, kernels::can_compile, sums);
  if (const graph::Node* node = passes::uncertain_behind_communication(graph))
    throw UncertainCollective(std::string(node->op->name));
  entry->exchanged_buckets_ = static_cast<size_t>(
      std::ranges::count(graph.body().nodes, &op::all_reduce_bucket, &graph::Node::op));
  entry->reducers_ = std::move(generated.reducers);
  const double optimised = now();
  entry->frames_of_call_ = frames_of_call(graph);
  entry->compile(graph);
  entry->program_ =
      execute::Program::compile(std::move(graph), *library(),
                                object_heap(std::move(generated.objects)), generated.shown_results);
  const double compiled = now();
  entry->times_ = {optimised - start, compiled - optimised};
  if (Timeline::is_kept()) {
    Timeline::add("optimise", graph_name, start / 1e3, optimised / 1e3);
    Timeline::add("compile", graph_name, optimised / 1e3, compiled / 1e3);
  }

  entry->bind(generated, call, death_callback(entry).get());
  return entry;
}

/// Compiles in the foreground if stages are dumped, so that they are numbered in one order.
void Entry::compile(const graph::Graph& graph) {
  if (options().is_disabled(kBackgroundSwitch.name) || !options().dump_folder.empty())
    kernels::compile_all(graph);
  else
    compiling_ = kernels::begin_compiling(graph);
}

double Entry::milliseconds_in_background() const {
  return compiling_ == nullptr ? 0 : 1e3 * compiling_->seconds();
}

std::optional<double> Entry::compiled_in_background() {
  if (compiling_ == nullptr) return 0;
  if (!compiling_->is_done()) return std::nullopt;
  return 1e3 * std::exchange(compiling_, nullptr)->seconds();
}

void Entry::bind(const Generated& generated, const Call& call, PyObject* on_death) {
  Captures captures;
  TORCHJANUS_CHECK(generated.inputs.size() == input_kinds_.size(),
                   "entry: ", generated.inputs.size(), " inputs are bound, the graph has ",
                   input_kinds_.size());
  for (const InputBinding& each : generated.inputs) {
    inputs_.push_back(captures.of(each.source));
    parts_.push_back(each.part);
  }

  const std::set<std::string> read = cells_read(program_->graph());
  std::unordered_map<std::string_view, const CellBinding*> bindings;
  for (const CellBinding& each : generated.cells) bindings[each.name] = &each;
  for (const std::string& name : program_->cells()) {
    const auto found = bindings.find(name);
    TORCHJANUS_CHECK(found != bindings.end(), "entry: the cell ", name, " is bound to nothing");
    const CellBinding* const binding = found->second;
    cells_.push_back({binding->kind, captures.of(binding->source), binding->key,
                      read.contains(name), program_->is_touched_by_kernels_only(cells_.size()),
                      binding->writes});
  }

  const auto capture = [&](const Source* source) { return captures.of(source); };
  result_ = Recipe(generated.result, capture);
  for (const HeapWrite& each : generated.writes)
    if (!changes_nothing(each, generated.writes)) writes_.emplace_back(each, capture);
  for (const Effect& each : generated.effects) {
    if (is_release_method(each.call.object.get()))
      locks_.push_back(captures.of(each.call.children[0].source));
    else
      effects_.emplace_back(each.call, capture);
  }
  lines_ = generated.lines;
  tests_ = generated.tests;
  guards_ = std::make_unique<Guards>(generated, call, captures.sources(), on_death);
}

execute::Slot Entry::list_input(size_t index, PyObject* list) const {
  execute::Slot made = execute::empty_list();
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(list); ++i)
    made =
        execute::push(made, number_slot(part_of(PySequence_Fast_GET_ITEM(list, i), parts_[index])));
  return made;
}

execute::Slot Entry::input(size_t index, PyObject* object) const {
  using execute::Slot;
  switch (input_kinds_[index]) {
    case graph::Type::Kind::tensor:
      return tensor_access().to_slot(object);
    case graph::Type::Kind::object:
      return Slot::borrow_object(object);
    case graph::Type::Kind::list:
      return list_input(index, object);
    case graph::Type::Kind::f64:
      return Slot::of(PyFloat_AsDouble(object));
    default:
      return number_slot(object);
  }
}

execute::Slot Entry::cell(const Cell& cell, PyObject* object) const {
  using execute::Slot;
  switch (cell.kind) {
    case CellBinding::Kind::tensor:
      return cell.is_alias ? tensor_access().alias_slot(object) : tensor_access().to_slot(object);
    case CellBinding::Kind::grad:
      if (!cell.is_read) return Slot();
      return tensor_access().grad_slot(object);
    case CellBinding::Kind::data:
      return Slot();
    case CellBinding::Kind::attribute:
      return cell.is_read
                 ? number_slot(python::check(PyObject_GetAttr(object, cell.key.get())).get())
                 : Slot();
    case CellBinding::Kind::item:
      return cell.is_read
                 ? number_slot(python::check(PyObject_GetItem(object, cell.key.get())).get())
                 : Slot();
    case CellBinding::Kind::global:
      break;
  }
  if (!cell.is_read) return Slot();
  PyObject* globals = PyFunction_Check(object) ? PyFunction_GET_GLOBALS(object) : object;
  return number_slot(python::check(PyObject_GetItem(globals, cell.key.get())).get());
}

void Entry::rebind(const Cell& cell, PyObject* object, PyObject* value) const {
  switch (cell.kind) {
    case CellBinding::Kind::attribute:
      python::check_status(PyObject_SetAttr(object, cell.key.get(), value));
      return;
    case CellBinding::Kind::item:
      python::check_status(PyObject_SetItem(object, cell.key.get(), value));
      return;
    case CellBinding::Kind::global:
      python::check_status(
          PyDict_SetItem(PyFunction_Check(object) ? PyFunction_GET_GLOBALS(object) : object,
                         cell.key.get(), value));
      return;
    default:
      break;
  }
  throw InternalError("entry: a cell is rebound that holds no object");
}

namespace {

/// A planted mutation: reverses the writes that add keys to each container.
void reverse_new_keys(const std::vector<HeapWriter>& writes, std::vector<size_t>& order) {
  for (size_t begin = 0, end = 1; begin < order.size(); begin = end, ++end) {
    while (end < order.size() && writes[begin].makes_keys_of(writes[end])) ++end;
    if (end - begin < 2 || !is_planted(State::key_order, Mutation::not_written)) continue;
    std::reverse(order.begin() + static_cast<std::ptrdiff_t>(begin),
                 order.begin() + static_cast<std::ptrdiff_t>(end));
  }
}

}  // namespace

void Entry::commit(const execute::Program& program, std::span<const python::Object> captured,
                   std::span<execute::Slot> rebound, std::span<const void* const> replaced) const {
  const auto places = program.rebound_cells();
  for (size_t i = 0; i < places.size(); ++i) {
    const Cell& cell = cells_[places[i]];
    PyObject* object = captured[cell.captured].get();
    if (cell.kind == CellBinding::Kind::data)
      tensor_access().set_data(object, rebound[i], cell.writes);
    else if (rebound[i].is_empty())
      continue;  // it stays what it is
    else if (cell.kind != CellBinding::Kind::grad)
      rebind(cell, object, to_object(rebound[i]).get());
    else if (!rebound[i].is_tensor() || rebound[i].tensor() != replaced[i])
      tensor_access().set_grad(object, rebound[i]);
  }
}

/// The old gradients that the run replaces. By then it has read all that it reads of them.
std::vector<const void*> Entry::offer_gradients(const execute::Program& program,
                                                std::span<const python::Object> captured,
                                                std::span<execute::Slot> rebound) const {
  const auto places = program.rebound_cells();
  std::vector<const void*> offered(places.size());
  for (size_t i = 0; i < places.size(); ++i) {
    const Cell& cell = cells_[places[i]];
    if (cell.kind != CellBinding::Kind::grad || cell.is_read) continue;
    rebound[i] = tensor_access().grad_slot(captured[cell.captured].get());
    if (rebound[i].is_tensor()) offered[i] = rebound[i].tensor();
  }
  return offered;
}

/// Counts the active runs of an entry.
class Entry::Running {
 public:
  explicit Running(Entry& entry) : entry_(entry) { ++entry_.running_; }
  ~Running() {
    if (--entry_.running_ == 0 && entry_.retired_) entry_.release();
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

 private:
  Entry& entry_;
};

std::optional<execute::Failure> Entry::run(std::vector<python::Object> captured, TakenLocks& locks,
                                           python::Object& result, bool& committed) {
  using execute::Slot;
  TORCHJANUS_CHECK(program_ != nullptr, "entry: a retired graph is run");
  const std::shared_ptr<execute::Program> program = program_;
  const Running running(*this);
  std::vector<Slot> inputs, cells;
  inputs.reserve(inputs_.size());
  for (size_t i = 0; i < inputs_.size(); ++i)
    inputs.push_back(input(i, captured[inputs_[i]].get()));
  cells.reserve(cells_.size());
  for (const Cell& each : cells_) cells.push_back(cell(each, captured[each.captured].get()));
  std::vector<Slot> results(result_count_), rebound(program->rebound_cells().size());

  const std::vector<const void*> replaced = offer_gradients(*program, captured, rebound);
  const auto findings = differentiable_ ? differentiable_->new_findings() : nullptr;
  const auto warnings = defer_warnings();
  auto failure = program->run(inputs, cells, results, rebound, deepest_call(), findings.get());
  if (failure) return failure;
  committed = true;
  commit(*program, captured, rebound, replaced);
  if (differentiable_) differentiable_->attach(inputs, program->cells(), cells, results, findings);
  result = finish(captured, results, locks);
  if (warnings) warnings->show();
  return std::nullopt;
}

std::optional<Reason> Entry::finalizer_in_the_way(std::span<const python::Object> captured) const {
  for (const HeapWriter& write : writes_)
    if (write.runs_finalizer(captured) && !is_planted(State::finalizer, Mutation::not_written))
      return Reason{ReasonCode::unknown_callable, cat("the finalizer of ", write.describe()), {}};
  return std::nullopt;
}

std::optional<Reason> Entry::reducer_in_the_way() const {
  const TensorAccess& access = tensor_access();
  for (const auto& [reducer, must_not_wait] : reducers_) {
    if (access.has_communication_hook(reducer))
      return Reason{
          ReasonCode::communication, "DistributedDataParallel (with a communication hook)", {}};
    if (access.is_reducing(reducer))
      return Reason{ReasonCode::communication,
                    "an earlier backward() has not shared the gradients of all parameters",
                    {}};
    if (must_not_wait && access.is_waiting(reducer))
      return Reason{ReasonCode::communication,
                    "an earlier forward pass has had no backward(), whose gradients are shared",
                    {}};
  }
  return std::nullopt;
}

std::optional<Reason> Entry::take_locks(std::span<const python::Object> captured,
                                        TakenLocks& taken) const {
  for (const size_t lock : locks_)
    if (!taken.take(captured[lock]))
      return Reason{ReasonCode::guard_failed, "a lock is taken when the call begins", {}};
  return std::nullopt;
}

/// The depth of calls at which Python's own calls surely stay within its limit. Beyond it the run
/// bails out, and Python decides whether it raises RecursionError.
int64_t Entry::deepest_call() const {
  if (frames_of_call_ == 0) return policy::kDeepestCall;
  return std::max<int64_t>(0, (python::frames_left() - policy::kFramesElsewhere) / frames_of_call_);
}

/// Builds all objects before the first write: building may fail, writing may not.
python::Object Entry::finish(std::span<const python::Object> captured,
                             std::span<execute::Slot> results, TakenLocks& locks) const {
  Recipe::Made made;
  python::Object result = result_.build(captured, results, made);
  std::vector<python::Object> values;
  values.reserve(writes_.size());
  for (const HeapWriter& write : writes_) values.push_back(write.value(captured, results, made));
  if (is_any_planted()) {
    finish_wrongly(captured, values, results, made);
    return result;
  }
  for (size_t i = 0; i < writes_.size(); ++i) writes_[i].write(captured, values[i].get());
  locks.release();
  for (const Recipe& effect : effects_) effect.build(captured, results, made);
  return result;
}

/// Finishes wrongly, as a planted mutation demands.
void Entry::finish_wrongly(std::span<const python::Object> captured,
                           std::span<const python::Object> values, std::span<execute::Slot> results,
                           Recipe::Made& made) const {
  std::vector<size_t> order(writes_.size());
  std::iota(order.begin(), order.end(), size_t{0});
  reverse_new_keys(writes_, order);
  for (const size_t i : order) writes_[i].write_wrongly(captured, values[i].get());
  for (const Recipe& effect : effects_) {
    if (is_planted(State::effect, Mutation::not_written)) continue;
    if (is_planted(State::effect, Mutation::twice)) effect.build(captured, results, made);
    effect.build(captured, results, made);
  }
}

std::string Entry::optimised_text() const {
  return program_ ? graph::print(program_->graph()) : std::string();
}
execute::Program::Timing Entry::timing() const {
  return program_ ? program_->timing() : execute::Program::Timing();
}
std::string Entry::program_text() const { return program_ ? program_->describe() : std::string(); }

}  // namespace janus::speculate
