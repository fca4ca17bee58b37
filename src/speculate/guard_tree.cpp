// The walk over guards: two nested loops over flat arrays, since steps come after their base and
// the checks of one object stand together.
#include "speculate/guard_tree.h"

#include <algorithm>

#include "base/check.h"
#include "base/fault.h"
#include "speculate/describe.h"

namespace janus::speculate {

using Kind = Assumption::Kind;

namespace {

Mismatch mismatch(std::string details, const std::string& path, const graph::SourceSpan& span,
                  bool dead = false) {
  return {{ReasonCode::guard_failed, std::move(details), span}, path, dead};
}

Mismatch explain(const std::string& path, const Check& check, PyObject* object) {
  const bool dead = check.kind == Kind::identity && check.object.dead();
  std::string found = check.kind == Kind::exact_type
                          ? describe_object(reinterpret_cast<PyObject*>(Py_TYPE(object)))
                      : check.kind == Kind::tensor ? describe_against(object, check.tensor.pattern)
                                                   : describe_object(object);
  const std::string text = check.wording->around(path);
  if (text.ends_with(found)) found += " (another one)";
  Mismatch explained =
      mismatch(cat("assumed that ", text, dead ? ", which is gone; found " : ", found ", found),
               path, check.span, dead);
  // Of lists whose length is ever another one there are only so many graphs.
  if (check.kind == Kind::length) explained.formula = length_text(path);
  return explained;
}

Mismatch explain_missing(const std::string& path, const Step& step) {
  const bool dead = step.path.kind == Source::Kind::item && step.path.key.dead();
  const graph::SourceSpan span =
      step.checks.empty() ? graph::SourceSpan() : step.checks.front().span;
  return mismatch(cat(path, " is not there any more"), path, span, dead);
}

bool same_names(PyObject* a, PyObject* b) {
  const Py_ssize_t a_count = a == nullptr ? 0 : PyTuple_GET_SIZE(a);
  const Py_ssize_t b_count = b == nullptr ? 0 : PyTuple_GET_SIZE(b);
  if (a_count != b_count) return false;
  for (Py_ssize_t i = 0; i < a_count && a != b; ++i)
    if (!equal_constants(PyTuple_GET_ITEM(a, i), PyTuple_GET_ITEM(b, i))) return false;
  return true;
}

}  // namespace

std::optional<std::pair<uint32_t, uint32_t>> DistinctCheck::find_same(
    PyObject* const* objects) const {
  Scratch<std::pair<PyObject*, uint32_t>, 256> sorted(steps.size());
  for (size_t i = 0; i < steps.size(); ++i) sorted[i] = {objects[steps[i]], steps[i]};
  std::sort(sorted.data(), sorted.data() + steps.size());
  for (size_t i = 1; i < steps.size(); ++i)
    if (sorted[i - 1].first == sorted[i].first)
      return std::pair(sorted[i - 1].second, sorted[i].second);
  return std::nullopt;
}

std::string GuardTree::text(uint32_t step) const {
  const PathStep& path = steps[step].path;
  if (!steps[step].text.empty()) return steps[step].text;
  if (path.kind <= Source::Kind::constant)
    return describe_step(path.kind, path.key.get(), path.index, {}, false);
  return describe_step(path.kind, path.key.get(), path.index, text(path.parent),
                       steps[path.parent].path.kind == Source::Kind::function);
}

const std::string& GuardTree::kept_text(uint32_t step) const {
  std::string& kept = steps[step].text;
  if (kept.empty()) kept = text(step);
  return kept;
}

std::string GuardTree::text(const PairCheck& pair) const {
  return cat(text(pair.step), pair.same ? " is " : " is not ", text(pair.other));
}

/// Visits all objects. With `mismatch` it also checks them, and returns false at the first failure.
bool GuardTree::walk(const Call& call, Objects& objects, Walk& walk,
                     std::optional<Mismatch>* mismatch) const {
  for (size_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps[i];
    const bool rooted = step.path.kind <= Source::Kind::constant;
    PyObject* base = rooted ? nullptr : objects[step.path.parent];
    PyObject* object =
        rooted || base != nullptr ? take_step(step.path, base, call, walk.owned) : nullptr;
    objects[i] = object;
    if (mismatch == nullptr) continue;
    if (object == nullptr) {
      *mismatch = explain_missing(text(static_cast<uint32_t>(i)), step);
      return false;
    }
    for (const Check& check : step.checks) {
      if (holds(check, object, walk) && !fault_due(Fault::assumption)) [[likely]]
        continue;
      walk.failed = &check;
      walk.failed_step = static_cast<uint32_t>(i);
      *mismatch = explain(text(walk.failed_step), check, object);
      return false;
    }
  }
  return true;
}

/// The object of one step; null if the path leads nowhere in this call.
PyObject* GuardTree::reach(uint32_t step, const Call& call,
                           std::vector<python::Object>& owned) const {
  const PathStep& path = steps[step].path;
  if (path.kind <= Source::Kind::constant) return take_step(path, nullptr, call, owned);
  PyObject* base = reach(path.parent, call, owned);
  return base == nullptr ? nullptr : take_step(path, base, call, owned);
}

std::optional<Mismatch> GuardTree::check_entry(const Call& call, const Environment& found) const {
  if (call.argument_count != argument_count || !same_names(call.keyword_names, keyword_names.get()))
    return mismatch("the call has other arguments", {}, {});
  if (!(found == environment))
    return mismatch("grad mode, autocast or another setting of torch changed", {}, {});
  return std::nullopt;
}

std::optional<Mismatch> GuardTree::check_pairs(Objects& objects) const {
  for (const PairCheck& pair : pairs) {
    const bool same = objects[pair.step] == objects[pair.other];
    if (same != pair.same || fault_due(Fault::assumption))
      return mismatch(cat("assumed that ", text(pair)), text(pair.step), pair.span);
  }
  for (const DistinctCheck& group : distinct) {
    const auto same = group.find_same(objects.data());
    if (!same && !fault_due(Fault::assumption)) continue;
    const auto [one, other] = same.value_or(std::pair(group.steps[0], group.steps[1]));
    return mismatch(cat("assumed that ", text(one), " is not ", text(other)), text(one),
                    group.span);
  }
  const auto shared = find_shared_memory(memory, objects.data(), [&](size_t i) {
    return tensor_access().storage_of(objects[memory[i].step]);
  });
  if (shared) {
    const std::string path = text(memory[shared->first].step);
    return mismatch(
        cat("assumed that ", path, " shares no memory with ", text(memory[shared->second].step)),
        path, memory[shared->first].span);
  }
  return std::nullopt;
}

std::optional<int64_t> GuardTree::evaluate(const graph::Dim& dim, Walk& walk) const {
  if (dim.is_constant()) return dim.value();
  return dim.evaluate([&](const std::string& name) -> std::optional<int64_t> {
    const auto found = symbols.find(name);
    if (found == symbols.end() || walk.bound[found->second] == 0) return std::nullopt;
    return walk.symbols[found->second];
  });
}

std::optional<Mismatch> GuardTree::check_relations(Walk& walk) const {
  for (const Relation& each : relations) {
    const auto left = each.left_size >= 0
                          ? std::optional<int64_t>(walk.sizes[static_cast<size_t>(each.left_size)])
                          : evaluate(each.left, walk);
    const auto right = evaluate(each.right, walk);
    if (left && right && *left == *right) continue;
    const std::string name = each.left_size >= 0 ? each.path : graph::to_string(each.left);
    Mismatch found = mismatch(cat("assumed that ", name, " == ", graph::to_string(each.right),
                                  ", found ", left.value_or(-1), " and ", right.value_or(-1)),
                              each.path, each.span);
    if (each.left_size < 0 && each.right.is_constant()) found.formula = name;
    return found;
  }
  return std::nullopt;
}

void GuardTree::capture(PyObject* const* objects, std::vector<python::Object>& to) const {
  to.clear();
  to.reserve(captured.size());
  for (const uint32_t step : captured) to.push_back(python::Object::borrow(objects[step]));
}

}  // namespace janus::speculate
