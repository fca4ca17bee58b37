// Arguments are evaluated in the order in which they are written. Binding follows CPython:
// positional parameters first, then keywords, then defaults.
#include "frontend/language/arguments.h"

#include <algorithm>

#include "frontend/core/operations.h"
#include "frontend/language/evaluation.h"
#include "frontend/values/constants.h"
#include "frontend/values/make.h"

namespace janus::frontend {

CallArguments evaluate_arguments(Interpreter& interpreter, const syntax::Call& call) {
  CallArguments arguments;
  for (const syntax::Expression* expression : call.args) {
    if (const auto* starred = syntax::try_as<syntax::Starred>(expression)) {
      for (Value& element : elements_of(interpreter, evaluate(interpreter, *starred->value)))
        arguments.positional.push_back(std::move(element));
    } else {
      arguments.positional.push_back(evaluate(interpreter, *expression));
    }
  }
  for (const syntax::Keyword* keyword : call.keywords) {
    Value value = evaluate(interpreter, *keyword->value);
    if (!keyword->arg.empty()) {
      arguments.keywords.emplace_back(interpreter.mangled(keyword->arg), std::move(value));
      continue;
    }
    Value dictionary = opened(interpreter, value);
    const auto* items = as<Dictionary>(dictionary);
    if (items == nullptr)
      interpreter.refuse(ReasonCode::unsupported_argument, "** of an object that is not a dict");
    for (const auto& [key, element] : items->items) {
      std::string name = text_of(key.get());
      if (name.empty() || arguments.keyword(name) != nullptr)
        interpreter.refuse(ReasonCode::would_raise, "TypeError: a keyword is given twice");
      arguments.keywords.emplace_back(name, element);
    }
  }
  return arguments;
}

namespace {

/// Binds the arguments of one call.
class Binding {
 public:
  Binding(Interpreter& interpreter, const Signature& signature, Variables& variables)
      : interpreter_(interpreter),
        tree_(signature.tree),
        parameters_(signature.arguments),
        function_(signature.function),
        variables_(variables) {}

  void run(const CallArguments& arguments, const Defaults& defaults) {
    collect_positional_parameters();
    bind_positional(arguments);
    bind_keywords(arguments);
    fill_defaults(defaults);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    interpreter_.refuse(ReasonCode::would_raise, cat("TypeError: ", function_, "() ", what));
  }

  void collect_positional_parameters() {
    for (const auto* parameter : parameters_.posonlyargs)
      names_.push_back(tree_.mangle(parameter->arg));
    for (const auto* parameter : parameters_.args) names_.push_back(tree_.mangle(parameter->arg));
  }

  void bind_positional(const CallArguments& arguments) {
    size_t bound = std::min(names_.size(), arguments.positional.size());
    for (size_t i = 0; i < bound; ++i) variables_.values[names_[i]] = arguments.positional[i];
    std::vector<Value> rest(arguments.positional.begin() + static_cast<std::ptrdiff_t>(bound),
                            arguments.positional.end());
    if (parameters_.vararg != nullptr)
      variables_.values[tree_.mangle(parameters_.vararg->arg)] = make_tuple(std::move(rest));
    else if (!rest.empty())
      fail(cat("takes ", names_.size(), " positional arguments but ", arguments.positional.size(),
               " were given"));
  }

  bool accepts_keyword(const std::string& name) const {
    size_t positional_only = parameters_.posonlyargs.size();
    for (size_t i = positional_only; i < names_.size(); ++i)
      if (names_[i] == name) return true;
    for (const auto* parameter : parameters_.kwonlyargs)
      if (tree_.mangle(parameter->arg) == name) return true;
    return false;
  }

  void bind_keywords(const CallArguments& arguments) {
    auto rest = std::make_shared<Dictionary>();
    for (const auto& [name, value] : arguments.keywords) {
      if (accepts_keyword(name)) {
        if (variables_.values.contains(name)) fail(cat("got multiple values for '", name, "'"));
        variables_.values[name] = value;
      } else if (parameters_.kwarg != nullptr) {
        rest->items.emplace_back(as<Known>(interpreter_.string(name))->object, value);
      } else {
        fail(cat("got an unexpected keyword argument '", name, "'"));
      }
    }
    if (parameters_.kwarg != nullptr)
      variables_.values[tree_.mangle(parameters_.kwarg->arg)] = rest;
  }

  void fill_defaults(const Defaults& defaults) {
    size_t first_default = names_.size() - std::min(names_.size(), defaults.positional.size());
    for (size_t i = 0; i < names_.size(); ++i) {
      if (variables_.values.contains(names_[i])) continue;
      if (i < first_default) fail(cat("missing the argument '", names_[i], "'"));
      variables_.values[names_[i]] = defaults.positional[i - first_default];
    }
    for (const auto* parameter : parameters_.kwonlyargs) {
      const std::string name = tree_.mangle(parameter->arg);
      if (variables_.values.contains(name)) continue;
      Value value = defaults.keyword(name);
      if (value == nullptr) fail(cat("missing the keyword argument '", name, "'"));
      variables_.values[name] = value;
    }
  }

  Interpreter& interpreter_;
  const syntax::Tree& tree_;
  const syntax::Arguments& parameters_;
  const std::string& function_;
  Variables& variables_;
  std::vector<std::string> names_;
};

}  // namespace

void bind_arguments(Interpreter& interpreter, const Signature& signature,
                    const CallArguments& arguments, const Defaults& defaults,
                    Variables& variables) {
  Binding(interpreter, signature, variables).run(arguments, defaults);
}

}  // namespace janus::frontend
