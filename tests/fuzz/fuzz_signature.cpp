// Any bytes: the schema parser gives a signature or an InternalError.
#include <cstdint>

#include "graph/signature.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    (void)janus::graph::parse_signature({reinterpret_cast<const char*>(data), size});
  } catch (const janus::InternalError&) {
  }
  return 0;
}
