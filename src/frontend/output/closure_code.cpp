#include "frontend/output/closure_code.h"

#include <algorithm>

#include "frontend/values/constants.h"

namespace janus::frontend {

using python::Object;

std::pair<const Variables*, Value> free_variable(const Closure& closure, std::string_view name) {
  for (const Variables* scope = closure.variables.get(); scope != nullptr;
       scope = scope->parent.get()) {
    const auto found = scope->values.find(name);
    if (found != scope->values.end()) return {scope, found->second};
    if (scope->scope->names.contains(std::string(name))) break;  // it is unbound
  }
  return {};
}

namespace {

/// The definition of the closure among the statements of the function around it, if it has neither
/// decorators nor annotations, which Python evaluates.
bool is_plain_definition(const syntax::FunctionDef& definition) {
  const syntax::Arguments& arguments = definition.args;
  const auto is_annotated = [](const syntax::Argument* each) {
    return each != nullptr && each->annotation != nullptr;
  };
  return definition.decorator_list.empty() && definition.returns == nullptr &&
         std::ranges::none_of(arguments.posonlyargs, is_annotated) &&
         std::ranges::none_of(arguments.args, is_annotated) &&
         std::ranges::none_of(arguments.kwonlyargs, is_annotated) &&
         !is_annotated(arguments.vararg) && !is_annotated(arguments.kwarg);
}

}  // namespace

Object code_of_definition(const Closure& closure) {
  if (closure.body == nullptr || !closure.code->function) return {};
  const syntax::FunctionDef* definition = nullptr;
  for (const syntax::Statement* each : closure.code->tree->body)
    if (const auto* found = syntax::try_as<syntax::FunctionDef>(each);
        found != nullptr && &found->body == closure.body)
      definition = found;
  if (definition == nullptr || !is_plain_definition(*definition)) return {};
  const Object constants =
      python::attribute(PyFunction_GetCode(closure.code->function.get()), "co_consts");
  Object code;
  for (const Object& each : python::elements(constants.get())) {
    if (!PyCode_Check(each.get())) continue;
    const auto* made = reinterpret_cast<PyCodeObject*>(each.get());
    if (text_of(made->co_name) != closure.name) continue;
    if (code) return {};  // which of them?
    code = each;
  }
  return code;
}

}  // namespace janus::frontend
