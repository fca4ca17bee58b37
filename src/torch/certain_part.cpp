// See certain_part.h.
#include "torch/certain_part.h"

#include <utility>

namespace janus::torch {

namespace {

thread_local bool in_certain_part = false;

}  // namespace

void enter_certain_part() { in_certain_part = true; }
bool is_certain_part() { return in_certain_part; }

UncertainScope::UncertainScope() : outer_(std::exchange(in_certain_part, false)) {}
UncertainScope::~UncertainScope() { in_certain_part = outer_; }

}  // namespace janus::torch
