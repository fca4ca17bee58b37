// The one place that holds the services torch/ gives to the frontend.
#include "frontend/core/torch_services.h"

#include "base/check.h"

namespace janus::frontend {

namespace {
TorchServices* current = nullptr;
}  // namespace

bool names_parameter(std::string_view keyword, std::string_view parameter) {
  return keyword == parameter || (parameter == "self" && keyword == "input") ||
         (parameter == "dim" && keyword == "axis") ||
         (parameter == "keepdim" && keyword == "keepdims");
}

TorchServices& torch_services() {
  TORCHJANUS_CHECK(current != nullptr, "torch_services: not set");
  return *current;
}

void set_torch_services(TorchServices* services) { current = services; }

}  // namespace janus::frontend
