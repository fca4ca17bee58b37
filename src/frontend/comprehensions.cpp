// Comprehensions and generator expressions, whose elements are taken one at a time.
#include "frontend/containers.h"
#include "frontend/counted.h"
#include "frontend/expressions.h"

namespace janus::frontend {

namespace {

/// Walks nested `for ... if ...` clauses, one element at a time.
class ElementStream {
 public:
  ElementStream(Interpreter& interpreter, const std::vector<syntax::Comprehension>& generators,
                const syntax::Scope* scope, Value iterable, std::function<Value()> element)
      : interpreter_(interpreter), generators_(generators), element_(std::move(element)) {
    for (const syntax::Comprehension& clause : generators)
      if (clause.is_async) interpreter.refuse(ReasonCode::generator, "an async comprehension");
    // The first iterable belongs to the scope around.
    if (iterable == nullptr) iterable = evaluate(interpreter, *generators[0].iter);
    if (const auto* object = as<RuntimeObject>(iterable))
      iterable = expected_elements(interpreter, *object, generators[0].iter->fact,
                                   generators[0].iter->fact);
    iterators_.push_back(iterate(interpreter, iterable));
    code_ = interpreter.frame().code;
    is_library_ = interpreter.frame().is_library;
    name_ = interpreter.frame().name;
    variables_ = std::make_shared<Variables>();
    variables_->scope = scope;
    variables_->parent = interpreter.frame().variables;
  }

  Value next() {
    Frame frame = interpreter_.make_frame(code_, variables_, name_);
    frame.is_library = is_library_;
    return interpreter_.run_frame(frame, [this] { return advance(); });
  }

 private:
  Value advance() {
    while (!iterators_.empty()) {
      size_t depth = iterators_.size() - 1;
      Value item = iterators_.back()->next();
      if (item == nullptr) {
        iterators_.pop_back();
        continue;
      }
      assign(interpreter_, *generators_[depth].target, item);
      if (!passes(generators_[depth])) continue;
      if (depth + 1 == generators_.size()) return element_();
      Value iterable = evaluate(interpreter_, *generators_[depth + 1].iter);
      iterators_.push_back(iterate(interpreter_, iterable));
    }
    return nullptr;
  }

  bool passes(const syntax::Comprehension& clause) {
    for (const syntax::Expression* condition : clause.ifs)
      if (!test(interpreter_, *condition, condition->fact)) return false;
    return true;
  }

  Interpreter& interpreter_;
  const std::vector<syntax::Comprehension>& generators_;
  std::function<Value()> element_;
  std::vector<std::shared_ptr<Iterator>> iterators_;
  std::shared_ptr<const Code> code_;
  std::shared_ptr<Variables> variables_;
  std::string name_;
  bool is_library_ = false;
};

}  // namespace

std::shared_ptr<Iterator> generate_elements(Interpreter& interpreter,
                                            const std::vector<syntax::Comprehension>& generators,
                                            const syntax::Scope* scope, Value iterable,
                                            std::function<Value()> element) {
  auto stream = std::make_shared<ElementStream>(interpreter, generators, scope, std::move(iterable),
                                                std::move(element));
  auto generator = std::make_shared<Iterator>([stream] { return stream->next(); });
  generator->type = &PyGen_Type;
  return generator;
}

}  // namespace janus::frontend
