#include "bind/profiled.h"

namespace janus::bind {

PyObject* profiled_call(speculate::Dispatcher& dispatcher, const speculate::Call& call) {
  const double start = speculate::now();
  PyObject* result = PyObject_Vectorcall(
      call.function, call.arguments, static_cast<size_t>(call.argument_count), call.keyword_names);
  dispatcher.profile_finished(speculate::now() - start);
  return result;
}

}  // namespace janus::bind
