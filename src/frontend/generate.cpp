// The generator's entry: whatever goes wrong inside comes back as a Reason.
#include "frontend/generate.h"

#include "frontend/interpreter.h"
#include "graph/op.h"
#include "ops/promotion.h"

namespace janus::frontend {

namespace {

speculate::Reason internal_error(const std::string& message) {
  return {ReasonCode::internal_error, message, {}};
}

}  // namespace

std::variant<speculate::Generated, speculate::Reason> generate(const speculate::Call& call,
                                                               speculate::ProfileStore& profiles) {
  try {
    const ops::DefaultDtype scope(speculate::tensor_access().environment().default_dtype);
    Interpreter interpreter(call, profiles);
    return interpreter.run();
  } catch (const Refusal& refusal) {
    PyErr_Clear();
    return refusal.reason;
  } catch (const graph::TypeError& error) {
    return speculate::Reason{ReasonCode::shape_mismatch, error.what(), {}};
  } catch (const python::ErrorSet&) {
    PyErr_Clear();
    return internal_error("an exception of the C API");
  } catch (const std::exception& error) {
    PyErr_Clear();
    return internal_error(error.what());
  }
}

}  // namespace janus::frontend
