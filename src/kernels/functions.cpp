#include "kernels/functions.h"

#include "base/check.h"

namespace janus::kernels {
namespace {

// clang-format off
constexpr Function kFunctions[] = {
    {.name = "sqrt",      .intrinsic = "sqrt", .cost = 6},
    {.name = "refined_sqrt", .cost = 12},  // as eager computes it on some processors
    {.name = "fabs",      .intrinsic = "fabs"},
    {.name = "floor",     .intrinsic = "floor"},
    {.name = "ceil",      .intrinsic = "ceil"},
    {.name = "trunc",     .intrinsic = "trunc"},
    {.name = "rint",      .intrinsic = "rint"},
    {.name = "nearbyint", .intrinsic = "nearbyint"},
    {.name = "round",     .intrinsic = "round", .cost = 4},
    {.name = "copysign",  .arity = 2, .intrinsic = "copysign"},
    {.name = "fmin",      .arity = 2, .intrinsic = "minnum", .cost = 2},
    {.name = "fmax",      .arity = 2, .intrinsic = "maxnum", .cost = 2},
    {.name = "fma",       .arity = 3, .intrinsic = "fma"},
    {.name = "exp",       .accuracy = "_u10", .cost = 12},
    {.name = "exp2",      .accuracy = "_u10", .cost = 20},
    {.name = "expm1",     .accuracy = "_u10", .cost = 40},
    {.name = "log",       .accuracy = "_u10", .cost = 25},
    {.name = "log2",      .accuracy = "_u10", .cost = 25},
    {.name = "log10",     .accuracy = "_u10", .cost = 25},
    {.name = "log1p",     .accuracy = "_u10", .cost = 40},
    {.name = "sin",       .accuracy = "_u10", .cost = 40},
    {.name = "cos",       .accuracy = "_u10", .cost = 40},
    {.name = "tan",       .accuracy = "_u10", .cost = 50},
    {.name = "asin",      .accuracy = "_u10", .cost = 40},
    {.name = "acos",      .accuracy = "_u10", .cost = 40},
    {.name = "atan",      .accuracy = "_u10", .cost = 40},
    {.name = "sinh",      .accuracy = "_u10", .cost = 50},
    {.name = "cosh",      .accuracy = "_u10", .cost = 50},
    {.name = "tanh",      .accuracy = "_u10", .cost = 20},
    {.name = "asinh",     .accuracy = "_u10", .cost = 60},
    {.name = "acosh",     .accuracy = "_u10", .cost = 60},
    {.name = "atanh",     .accuracy = "_u10", .cost = 60},
    {.name = "erf",       .accuracy = "_u10", .cost = 20},
    {.name = "erfc",      .accuracy = "_u15", .cost = 60},
    {.name = "lgamma",    .accuracy = "_u10", .cost = 150},
    {.name = "tgamma",    .accuracy = "_u10", .cost = 150},
    {.name = "cbrt",      .accuracy = "_u10", .cost = 50},
    {.name = "pow",       .arity = 2, .accuracy = "_u10", .cost = 80},
    {.name = "atan2",     .arity = 2, .accuracy = "_u10", .cost = 60},
    {.name = "hypot",     .arity = 2, .accuracy = "_u05", .cost = 40},
    {.name = "fmod",      .arity = 2, .cost = 30},
    {.name = "nextafter", .arity = 2, .cost = 20},
};
// clang-format on

}  // namespace

const Function* find_function(std::string_view name) {
  for (const Function& function : kFunctions)
    if (function.name == name) return &function;
  return nullptr;
}

std::string vector_name(const Function& function, bool is_double, int lanes) {
  return cat("Sleef_", function.name, is_double ? "d" : "f", lanes, function.accuracy);
}

std::string scalar_name(const Function& function, bool is_double) {
  return cat(function.name, is_double ? "" : "f");
}

}  // namespace janus::kernels
