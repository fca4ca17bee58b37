#include "frontend/core/exceptions.h"

#include <memory>
#include <utility>

#include "frontend/core/value_maker.h"
#include "frontend/values/make.h"

namespace janus::frontend {

Awaiting::Awaiting(Frames& frames, What what, PyObject* type) : frame_(frames.frame()) {
  frames.await(what == What::exceptions ? type : nullptr);
}

bool is_awaited(const Frames& frames, PyObject* type) { return frames.awaits(type); }

void raise(const Frames& frames, PyObject* type, std::string details) {
  if (is_awaited(frames, type))
    throw Raised{std::make_shared<Instance>(python::Object::borrow(type))};
  frames.refuse(ReasonCode::would_raise, std::move(details));
}

Value initialise_exception(ValueMaker& maker, const CallArguments& arguments) {
  if (arguments.positional.empty() || !arguments.keywords.empty() ||
      !is_exception(arguments.positional[0]))
    return nullptr;
  set_exception_arguments(
      *as<Instance>(arguments.positional[0]),
      make_tuple({arguments.positional.begin() + 1, arguments.positional.end()}));
  return maker.none();
}

}  // namespace janus::frontend
