// See guard_compiler.h.
#include "speculate/guard_compiler.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/check.h"
#include "speculate/source.h"

namespace janus::speculate {

using Kind = Assumption::Kind;

namespace {

bool is_value_check(const Check& check, PyObject* object) {
  if (check.kind == Kind::equals)
    return PyLong_CheckExact(object) || PyFloat_CheckExact(object) || PyBool_Check(object) ||
           PyTuple_CheckExact(object) || PyUnicode_CheckExact(object);
  if (check.kind == Kind::exact_type) return object == reinterpret_cast<PyObject*>(&PyUnicode_Type);
  return check.kind == Kind::tensor || check.kind == Kind::integer ||
         check.kind == Kind::floating || check.kind == Kind::boolean ||
         check.kind == Kind::elements || check.kind == Kind::length;
}

bool is_pair(Kind kind) { return kind == Kind::same_object || kind == Kind::not_same_object; }

/// The ranks of checks: cheap ones that make the others safe come first.
constexpr int kHighestRank = 2;
int rank(Kind kind) {
  if (kind == Kind::exact_type) return 0;
  return kind == Kind::identity ? 1 : 2;
}

}  // namespace

uint32_t GuardCompiler::step(const Source* source) {
  TORCHJANUS_CHECK(source != nullptr, "guards: an assumption without a source");
  if (const auto found = steps_.find(source); found != steps_.end()) return found->second;
  Step made;
  made.path.kind = source->kind;
  if (source->base != nullptr) made.path.parent = step(source->base);
  made.path.key = ExpectedObject(source->key.get(), on_death_);
  made.path.index = source->index;
  if (source->key && source->kind != Source::Kind::constant &&
      source->kind != Source::Kind::argument) {
    made.path.hash = PyObject_Hash(source->key.get());
    if (made.path.hash == -1) throw python::ErrorSet();
  }
  if (made.path.key.may_die()) made.text = source->describe();
  const auto index = static_cast<uint32_t>(tree_.steps.size());
  tree_.steps.push_back(std::move(made));
  steps_.emplace(source, index);
  return index;
}

size_t GuardCompiler::symbol(const std::string& name) {
  return tree_.symbols.try_emplace(name, tree_.symbols.size()).first->second;
}

TensorCheck GuardCompiler::tensor_check(const TensorPattern& pattern,
                                        const Assumption& assumption) {
  TensorCheck check{pattern, {}, tree_.size_count};
  tree_.size_count += pattern.dims.size();
  for (size_t i = 0; i < pattern.dims.size(); ++i) {
    const graph::Dim& dim = pattern.dims[i];
    DimCheck made;
    if (dim.is_constant()) {
      made.number = dim.value();
    } else if (const auto names = dim.symbols();
               names.size() == 1 && graph::to_string(dim) == names.front()) {
      made.kind = DimCheck::Kind::symbol;
      made.symbol = symbol(names.front());
      made.number = std::max<int64_t>(0, dim.lower_bound().value_or(0));
    } else {
      made.kind = DimCheck::Kind::expression;
      tree_.relations.push_back({{},
                                 dim,
                                 static_cast<ptrdiff_t>(check.first_size + i),
                                 cat(assumption.source->describe(), ".shape[", i, "]"),
                                 assumption.span});
    }
    check.dims.push_back(made);
  }
  return check;
}

ElementCheck GuardCompiler::element_check(const ElementPattern& pattern,
                                          const Assumption& assumption) {
  ElementCheck check;
  check.kind = pattern.kind;
  if (pattern.kind == ElementPattern::Kind::tensor)
    check.tensor = tensor_check(pattern.tensor, assumption);
  for (const ElementPattern& part : pattern.parts)
    check.parts.push_back(element_check(part, assumption));
  return check;
}

bool GuardCompiler::is_new(const Assumption& a) {
  auto& seen = seen_[a.source];
  const bool known =
      a.kind != Kind::tensor && std::any_of(seen.begin(), seen.end(), [&](const Assumption* b) {
        return a.kind == b->kind && a.other == b->other && a.object.is(b->object.get()) &&
               a.number == b->number && a.symbol == b->symbol;
      });
  if (!known) seen.push_back(&a);
  return !known;
}

void GuardCompiler::add(const Assumption& assumption) {
  if (!is_new(assumption)) return;
  const uint32_t at = step(assumption.source);
  if (assumption.kind == Kind::separate_memory) {
    tree_.memory.push_back({at, assumption.number != 0, assumption.span, assumption.elements});
    return;
  }
  if (is_pair(assumption.kind) && assumption.other == nullptr) {
    const auto group = static_cast<size_t>(assumption.number);
    if (tree_.distinct.size() <= group) tree_.distinct.resize(group + 1);
    tree_.distinct[group].steps.push_back(at);
    tree_.distinct[group].span = assumption.span;
    return;
  }
  if (is_pair(assumption.kind)) {
    tree_.pairs.push_back(
        {at, step(assumption.other), assumption.kind == Kind::same_object, assumption.span});
    return;
  }
  Check check;
  check.kind = assumption.kind;
  check.object = ExpectedObject(assumption.object.get(), on_death_);
  check.number = assumption.number;
  check.span = assumption.span;
  check.wording = &*tree_.wordings.insert(wording_of(assumption)).first;
  if (assumption.kind == Kind::keys) {
    check.object = {};
    TORCHJANUS_CHECK(PyTuple_Check(assumption.object.get()), "guards: keys are no tuple");
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(assumption.object.get()); ++i)
      check.keys.emplace_back(PyTuple_GET_ITEM(assumption.object.get(), i), on_death_);
  }
  if (!assumption.symbol.empty()) check.symbol = static_cast<ptrdiff_t>(symbol(assumption.symbol));
  if (assumption.kind == Kind::tensor) check.tensor = tensor_check(assumption.tensor, assumption);
  if (assumption.kind == Kind::elements)
    check.elements =
        std::make_unique<ElementCheck>(element_check(*assumption.elements, assumption));
  if (is_value_check(check, assumption.object.get() == nullptr ? Py_None : assumption.object.get()))
    tree_.steps[at].about_value = true;
  tree_.steps[at].checks.push_back(std::move(check));
}

void GuardCompiler::add(const DimAssumption& assumption) {
  tree_.relations.push_back({assumption.left, assumption.right, -1, {}, assumption.span});
}

void GuardCompiler::finish() {
  for (Step& each : tree_.steps) {
    std::vector<Check> ordered;
    ordered.reserve(each.checks.size());
    for (int wanted = 0; wanted <= kHighestRank; ++wanted)
      for (Check& check : each.checks)
        if (rank(check.kind) == wanted) ordered.push_back(std::move(check));
    each.checks = std::move(ordered);
  }
  tree_.steps.shrink_to_fit();
  tree_.pairs.shrink_to_fit();
}

}  // namespace janus::speculate
