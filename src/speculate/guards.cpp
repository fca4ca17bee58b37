// See guards.h.
#include "speculate/guards.h"

#include "base/check.h"
#include "base/fault.h"
#include "base/options.h"
#include "speculate/describe.h"
#include "speculate/guard_compiler.h"
#include "speculate/guard_tree.h"
#include "speculate/inline_cache.h"

namespace janus::speculate {

Guards::Guards(const Generated& generated, const Call& call,
               std::span<const Source* const> captured, PyObject* on_death)
    : tree_(std::make_unique<GuardTree>()), is_verified_(log_enabled("verify", 2)) {
  tree_->argument_count = call.argument_count;
  tree_->keyword_names = python::Object::borrow(call.keyword_names);
  tree_->environment = generated.environment;
  GuardCompiler compiler(*tree_, on_death);
  for (const Assumption& each : generated.assumptions) compiler.add(each);
  for (const DimAssumption& each : generated.dim_assumptions) compiler.add(each);
  for (const Source* each : captured) tree_->captured.push_back(compiler.step(each));
  compiler.finish();
  inline_cache_ = std::make_unique<InlineCache>(*tree_);
  if (on_death == nullptr) inline_cache_->forget();
}

Guards::~Guards() = default;

std::optional<Mismatch> Guards::check(const Call& call, const Environment& environment,
                                      std::vector<python::Object>& captured) const {
  if (auto found = tree_->check_entry(call, environment)) return found;
  const bool recalled = inline_cache_->holds(call, captured);
  if (recalled && !is_verified_) return std::nullopt;
  std::optional<Mismatch> found = check_all(call, captured);
  TORCHJANUS_CHECK(!recalled || !found, "guards: they hold as recalled, but ",
                   found->reason.details);
  return found;
}

/// Walks only the path to the check that failed the last time. Graphs of one function mostly differ
/// in one place: the shape of an argument, the class of an object, a flag.
bool Guards::fail_again(const Call& call) const {
  if (failed_ == nullptr || injected_fault.load(std::memory_order_relaxed) == Fault::assumption)
    return false;
  Walk walk(tree_->size_count, tree_->symbols.size());
  PyObject* object = tree_->reach(failed_step_, call, walk.owned);
  return object == nullptr || !holds(*failed_, object, walk);
}

/// Walks all paths from scratch.
std::optional<Mismatch> Guards::check_all(const Call& call,
                                          std::vector<python::Object>& captured) const {
  Walk walk(tree_->size_count, tree_->symbols.size());
  GuardTree::Objects objects(tree_->steps.size());
  std::optional<Mismatch> found;
  if (!tree_->walk(call, objects, walk, &found)) {
    failed_ = walk.failed;
    failed_step_ = walk.failed_step;
    return found;
  }
  if ((found = tree_->check_pairs(objects))) return found;
  if ((found = tree_->check_relations(walk))) return found;
  tree_->capture(objects.data(), captured);
  inline_cache_->note(objects.data());
  return std::nullopt;
}

void Guards::forget() {
  if (inline_cache_) inline_cache_->forget();
}

uint64_t Guards::recalled() const { return inline_cache_->hits(); }

namespace {

/// Visits the tensors in an element of a list, under the path of any element.
void visit_tensors(const std::string& path, PyObject* object, const Guards::Visit& visit) {
  if (PyTuple_CheckExact(object))
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); ++i)
      visit_tensors(cat(path, "[", i, "]"), PyTuple_GET_ITEM(object, i), visit);
  if (!tensor_access().is_tensor(object)) return;
  const auto fact = tensor_access().describe(object, nullptr);
  if (fact && !fact->is_parameter) visit(path, object);
}

/// Visits a value; of a list or tuple also its length and tensors.
void visit_value(const std::string& path, PyObject* object, const Guards::Visit& visit) {
  if (!PyList_CheckExact(object)) visit(path, object);
  if (!PyList_CheckExact(object) && !PyTuple_CheckExact(object)) return;
  const Py_ssize_t length = PySequence_Fast_GET_SIZE(object);
  visit(length_text(path), python::check(PyLong_FromSsize_t(length)).get());
  for (Py_ssize_t i = 0; i < length; ++i)
    visit_tensors(element_text(path), PySequence_Fast_GET_ITEM(object, i), visit);
}

}  // namespace

void Guards::visit_values(const Call& call, const Visit& visit) const {
  Walk walk(tree_->size_count, tree_->symbols.size());
  GuardTree::Objects objects(tree_->steps.size());
  tree_->walk(call, objects, walk, nullptr);
  for (size_t i = 0; i < tree_->steps.size(); ++i)
    if (tree_->steps[i].about_value && objects[i] != nullptr)
      visit_value(tree_->kept_text(static_cast<uint32_t>(i)), objects[i], visit);
}

std::vector<std::string> Guards::describe() const {
  std::vector<std::string> lines;
  for (size_t i = 0; i < tree_->steps.size(); ++i)
    for (const Check& check : tree_->steps[i].checks)
      lines.push_back(check.wording->around(tree_->text(static_cast<uint32_t>(i))));
  for (const PairCheck& pair : tree_->pairs) lines.push_back(tree_->text(pair));
  for (const DistinctCheck& group : tree_->distinct) {
    std::string line = "no two are one object:";
    for (const uint32_t step : group.steps)
      line += (step == group.steps.front() ? " " : ", ") + tree_->text(step);
    lines.push_back(std::move(line));
  }
  for (const MemoryCheck& each : tree_->memory)
    lines.push_back(separate_memory_text(tree_->text(each.step), each.is_written));
  for (const Relation& each : tree_->relations)
    if (each.left_size < 0)
      lines.push_back(cat(graph::to_string(each.left), " == ", graph::to_string(each.right)));
  return lines;
}

size_t Guards::assumption_count() const {
  size_t count =
      tree_->pairs.size() + tree_->distinct.size() + tree_->memory.size() + tree_->relations.size();
  for (const Step& step : tree_->steps) count += step.checks.size();
  return count;
}

}  // namespace janus::speculate
