#include "bind/profiled.h"

#include "speculate/hooks.h"

namespace janus::bind {

PyObject* profiled_call(speculate::Dispatcher& dispatcher, const speculate::Call& call) {
  const double start = speculate::now();
  PyObject* result = nullptr;
  try {
    result = speculate::profiled_call(call.function, call.arguments, call.argument_count,
                                      call.keyword_names)
                 .release();
  } catch (const python::ErrorSet&) {
  }
  dispatcher.profile_finished(speculate::now() - start);
  return result;
}

}  // namespace janus::bind
