#include "frontend/tensors/refused_numbers.h"

#include <string>
#include <string_view>

#include "frontend/core/torch_services.h"
#include "frontend/values/number_kinds.h"

namespace janus::frontend {

namespace {

void expect_taken(Interpreter& interpreter, const std::string& name, const Value& value,
                  size_t position, std::string_view keyword = {}) {
  if (is_number(value) && !torch_services().takes_number(name, position, keyword))
    interpreter.refuse(ReasonCode::would_raise,
                       cat("TypeError: ", name, " takes no number in the place of a tensor"));
}

}  // namespace

void refuse_numbers_for_tensors(Interpreter& interpreter, PyObject* callable,
                                const CallArguments& arguments) {
  if (!PyCFunction_Check(callable) && !Py_IS_TYPE(callable, &PyMethodDescr_Type)) return;
  const auto name = torch_services().operator_name(callable);
  if (!name) return;
  for (size_t i = 0; i < arguments.positional.size(); ++i)
    expect_taken(interpreter, *name, arguments.positional[i], i);
  for (const auto& [keyword, value] : arguments.keywords)
    expect_taken(interpreter, *name, value, 0, keyword);
}

}  // namespace janus::frontend
