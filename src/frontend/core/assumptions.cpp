#include "frontend/core/assumptions.h"

#include "frontend/values/constants.h"

namespace janus::frontend {

using python::Object;

void Assumptions::assume(Assumption assumption) {
  if (assumption.source == nullptr) return;
  bool what_it_is = assumption.kind == Assumption::Kind::identity ||
                    assumption.kind == Assumption::Kind::exact_type ||
                    assumption.kind == Assumption::Kind::equals;
  if (what_it_is && assumption.source->kind == Source::Kind::constant) return;
  std::string key = cat(static_cast<int>(assumption.kind), '|', assumption.source, '|',
                        assumption.other, '|', assumption.object.get(), '|', assumption.number);
  if (!assumed_.insert(std::move(key)).second) return;
  assumption.span = frames_.has_frame() ? frames_.user_span() : graph::SourceSpan();
  writer_.output().assumptions.push_back(std::move(assumption));
}

void Assumptions::assume(Assumption::Kind kind, const Source* source, Object object,
                         int64_t number) {
  Assumption assumption;
  assumption.kind = kind;
  assumption.source = source;
  assumption.object = std::move(object);
  assumption.number = number;
  assume(std::move(assumption));
}

void Assumptions::assume_identity(const Known& known) {
  if (known.source != nullptr && !is_immutable_constant(known.object.get()))
    assume(Assumption::Kind::identity, known.source, known.object);
}

void Assumptions::assume_same_object(const Source* one, const Source* other, bool same) {
  if (one == other || one == nullptr || other == nullptr) return;
  Assumption assumption;
  assumption.kind = same ? Assumption::Kind::same_object : Assumption::Kind::not_same_object;
  assumption.source = one;
  assumption.other = other;
  assume(std::move(assumption));
}

void Assumptions::assume_equal(const graph::Dim& left, const graph::Dim& right) {
  if (left == right) return;
  writer_.output().dim_assumptions.push_back({left, right, frames_.user_span()});
}

}  // namespace janus::frontend
