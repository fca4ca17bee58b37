// `match`: a case at a time, its pattern part by part. What the patterns bind is bound when the
// whole pattern holds, before the guard; a test of a number that only the run knows has both sides
// in the graph.
#include "frontend/language/match.h"

#include <algorithm>

#include "frontend/control/branches.h"
#include "frontend/core/class_of.h"
#include "frontend/core/keys.h"
#include "frontend/core/narrowing.h"
#include "frontend/core/operations.h"
#include "frontend/core/torch_objects.h"
#include "frontend/language/conditions.h"
#include "frontend/language/evaluation.h"
#include "frontend/objects/attributes.h"
#include "frontend/objects/container_classes.h"
#include "frontend/objects/folding.h"
#include "frontend/objects/membership.h"
#include "frontend/objects/subscripts.h"
#include "frontend/values/constants.h"
#include "frontend/values/make.h"
#include "frontend/values/number_kinds.h"
#include "frontend/values/truth.h"

namespace janus::frontend {

using python::Object;
using syntax::PatternKind;

namespace {

constexpr unsigned long kMatchesItself = 1UL << 22;  // _Py_TPFLAGS_MATCH_SELF

class Matcher {
 public:
  Matcher(Interpreter& interpreter, const syntax::Match& statement, Value subject)
      : interpreter_(interpreter), statement_(statement), subject_(std::move(subject)) {}

  Completion run(size_t index = 0) {
    if (index == statement_.cases.size()) return Completion::normal;
    const syntax::MatchCase& one = statement_.cases[index];
    const auto next = [this, index] { return run(index + 1); };
    const auto matched = [this, &one, next](const Bindings& bindings) {
      for (const auto& [name, value] : bindings) interpreter_.write_name(name, value);
      const auto body = [&] { return execute(interpreter_, one.body); };
      if (one.guard == nullptr) return body();
      int fact = one.guard->fact;
      const Truth truth = evaluate_truth(interpreter_, *one.guard, fact);
      return decide(truth, fact, body, next);
    };
    return match(*one.pattern, subject_, {}, matched, next);
  }

 private:
  using Bindings = std::vector<std::pair<std::string, Value>>;
  using Matched = std::function<Completion(const Bindings&)>;
  using Failed = std::function<Completion()>;
  /// Parts of values with the patterns that they have to match.
  using Parts = std::vector<std::pair<const syntax::Pattern*, Value>>;

  Completion decide(const Truth& truth, int fact, const Failed& yes, const Failed& no) {
    if (truth.known) return *truth.known ? yes() : no();
    if (takes_both(interpreter_, fact))
      return choose_statements(interpreter_, truth, fact, yes, no);
    return interpreter_.follow(truth.flag, truth.example, fact) ? yes() : no();
  }

  Completion match(const syntax::Pattern& pattern, const Value& value, const Bindings& bindings,
                   const Matched& matched, const Failed& failed) {
    interpreter_.at(pattern);
    switch (pattern.kind) {
      case PatternKind::MatchValue: {
        const syntax::Expression& literal = *syntax::as<syntax::MatchValue>(&pattern).value;
        const Value expected = evaluate(interpreter_, literal);
        const bool is_container = as<Sequence>(value) != nullptr ||
                                  as<Dictionary>(value) != nullptr ||
                                  as<SetValue>(value) != nullptr;
        if (is_container && as<Known>(expected) != nullptr &&
            is_immutable_constant(as<Known>(expected)->object.get()) &&
            !PyTuple_Check(as<Known>(expected)->object.get()))
          return failed();
        return compared(syntax::CompareOperator::Eq, value, expected, literal.fact, bindings,
                        matched, failed);
      }
      case PatternKind::MatchSingleton: {
        const Value expected =
            interpreter_.constant(syntax::as<syntax::MatchSingleton>(&pattern).value);
        // A number of the graph that is a bool is True or False, and nothing else is.
        const auto* number = as<Number>(value);
        const bool is_flag = number != nullptr && number->type == graph::Type::Kind::boolean &&
                             !as<Known>(expected)->object.is(Py_None);
        if (number != nullptr && !is_flag) return failed();
        return compared(is_flag ? syntax::CompareOperator::Eq : syntax::CompareOperator::Is, value,
                        expected, statement_.subject->fact, bindings, matched, failed);
      }
      case PatternKind::MatchAs: {
        const auto& as = syntax::as<syntax::MatchAs>(&pattern);
        const auto bound = [&](const Bindings& inner) {
          Bindings all = inner;
          if (!as.name.empty()) all.emplace_back(as.name, value);
          return matched(all);
        };
        if (as.pattern == nullptr) return bound(bindings);
        return match(*as.pattern, value, bindings, bound, failed);
      }
      case PatternKind::MatchOr:
        return match_any(syntax::as<syntax::MatchOr>(&pattern).patterns, 0, value, bindings,
                         matched, failed);
      case PatternKind::MatchSequence: {
        Parts parts;
        if (!sequence_parts(syntax::as<syntax::MatchSequence>(&pattern), value, parts))
          return failed();
        return match_all(parts, 0, bindings, matched, failed);
      }
      case PatternKind::MatchMapping: {
        Parts parts;
        if (!mapping_parts(syntax::as<syntax::MatchMapping>(&pattern), value, parts))
          return failed();
        return match_all(parts, 0, bindings, matched, failed);
      }
      case PatternKind::MatchClass: {
        Parts parts;
        if (!class_parts(syntax::as<syntax::MatchClass>(&pattern), value, parts)) return failed();
        return match_all(parts, 0, bindings, matched, failed);
      }
      case PatternKind::MatchStar:
        break;  // its sequence takes it
    }
    TORCHJANUS_CHECK(false, "match: a starred pattern outside of a sequence");
  }

  Completion compared(syntax::CompareOperator op, const Value& value, const Value& expected,
                      int fact, const Bindings& bindings, const Matched& matched,
                      const Failed& failed) {
    const Truth truth = truth_of(interpreter_, compare(interpreter_, op, value, expected));
    return decide(truth, fact, [&] { return matched(bindings); }, failed);
  }

  Completion match_any(const std::vector<syntax::Pattern*>& patterns, size_t index,
                       const Value& value, const Bindings& bindings, const Matched& matched,
                       const Failed& failed) {
    if (index == patterns.size()) return failed();
    const auto next = [&, index] {
      return match_any(patterns, index + 1, value, bindings, matched, failed);
    };
    return match(*patterns[index], value, bindings, matched, next);
  }

  Completion match_all(const Parts& parts, size_t index, const Bindings& bindings,
                       const Matched& matched, const Failed& failed) {
    if (index == parts.size()) return matched(bindings);
    const auto next = [&, index](const Bindings& inner) {
      return match_all(parts, index + 1, inner, matched, failed);
    };
    return match(*parts[index].first, narrowed(interpreter_, parts[index].second), bindings, next,
                 failed);
  }

  /// Whether its class says that it is a sequence, or a mapping.
  bool has_flag(const Value& value, unsigned long flag) {
    const Value type = type_of(interpreter_, value);
    auto* object = reinterpret_cast<PyTypeObject*>(as<Known>(type)->object.get());
    return (object->tp_flags & flag) != 0;
  }

  bool sequence_parts(const syntax::MatchSequence& pattern, const Value& value, Parts& parts) {
    if (!has_flag(value, Py_TPFLAGS_SEQUENCE)) return false;
    // Python asks for the length, and for each element by its index.
    for (const char* asked : {"__len__", "__getitem__"})
      if (has_written_method(value, asked))
        interpreter_.refuse(ReasonCode::expression,
                            "a sequence pattern on an object with its own methods");
    const std::vector<Value> elements = elements_of(interpreter_, value);
    const size_t count = pattern.patterns.size();
    size_t star = count;
    for (size_t i = 0; i < count; ++i)
      if (pattern.patterns[i]->kind == PatternKind::MatchStar) star = i;
    if (star == count ? elements.size() != count : elements.size() + 1 < count) return false;
    const size_t surplus = elements.size() + 1 - count;  // that the star takes
    for (size_t i = 0; i < count; ++i) {
      if (i != star) {
        parts.emplace_back(pattern.patterns[i], elements[i < star ? i : i + surplus - 1]);
        continue;
      }
      const auto& name = syntax::as<syntax::MatchStar>(pattern.patterns[i]).name;
      if (name.empty()) continue;
      const auto first = elements.begin() + static_cast<std::ptrdiff_t>(star);
      parts.emplace_back(capture(name, pattern),
                         make_list({first, first + static_cast<std::ptrdiff_t>(surplus)}));
    }
    return true;
  }

  bool mapping_parts(const syntax::MatchMapping& pattern, const Value& value, Parts& parts) {
    if (!has_flag(value, Py_TPFLAGS_MAPPING)) return false;
    std::vector<Value> keys;
    for (size_t i = 0; i < pattern.keys.size(); ++i) {
      const Value key = evaluate(interpreter_, *pattern.keys[i]);
      const Value part = item_of(value, key);
      if (part == nullptr) return false;
      parts.emplace_back(pattern.patterns[i], part);
      keys.push_back(key);
    }
    if (!pattern.rest.empty())
      parts.emplace_back(capture(pattern.rest, pattern), rest_of(value, keys));
    return true;
  }

  /// The mapping's value for the key, by its `get` as Python asks for it; null if there is none.
  Value item_of(const Value& value, const Value& key) {
    static PyObject* const missing =
        PyObject_CallNoArgs(reinterpret_cast<PyObject*>(&PyBaseObject_Type));
    if (as<Dictionary>(value) != nullptr || real_dict(value))
      return contains(interpreter_, value, key) ? subscript(interpreter_, value, key) : nullptr;
    const CallArguments arguments = {.positional = {key, interpreter_.constant_borrowed(missing)},
                                     .keywords = {}};
    const Value found = narrowed(
        interpreter_, call(interpreter_, attribute(interpreter_, value, "get"), arguments));
    expect_narrowed(found);
    return known_object(found) == missing ? nullptr : found;
  }

  /// A dict of the items that no pattern names.
  Value rest_of(const Value& value, const std::vector<Value>& keys) {
    const Value shadow = opened(interpreter_, value);
    const auto* all = as<Dictionary>(shadow);
    if (all == nullptr)
      interpreter_.refuse(ReasonCode::statement, "the rest of a mapping that is no dict");
    auto rest = std::make_shared<Dictionary>();
    for (const auto& item : all->items) {
      const bool named = std::any_of(keys.begin(), keys.end(), [&](const Value& key) {
        return same_key(interpreter_, item.first.get(), key_object(interpreter_, key).get());
      });
      if (!named) rest->items.push_back(item);
    }
    return rest;
  }

  /// A pattern that takes whatever is there.
  const syntax::Pattern* capture(const std::string& name, const syntax::Pattern& in) {
    rests_.push_back(std::make_unique<syntax::MatchAs>());
    rests_.back()->name = name;
    rests_.back()->span = in.span;
    return rests_.back().get();
  }

  bool class_parts(const syntax::MatchClass& pattern, const Value& value, Parts& parts) {
    const Value type = evaluate(interpreter_, *pattern.cls);
    CallArguments arguments;
    arguments.positional = {value, type};
    const Value is_instance = call(
        interpreter_, interpreter_.constant_borrowed(imported("builtins.isinstance")), arguments);
    if (!truth(interpreter_, is_instance, -1)) return false;
    const auto* known = as<Known>(type);
    if (known == nullptr || !PyType_Check(known->object.get()))
      interpreter_.refuse(ReasonCode::statement, "a class pattern whose class is not a class");
    std::vector<std::string> names;
    if (!pattern.patterns.empty()) {
      const auto* object = reinterpret_cast<PyTypeObject*>(known->object.get());
      if ((object->tp_flags & kMatchesItself) != 0 && pattern.patterns.size() == 1)
        parts.emplace_back(pattern.patterns[0], value);
      else
        names = positional_names(type, pattern.patterns.size());
    }
    for (const std::string& name : pattern.kwd_attrs) names.push_back(name);
    for (size_t i = 0; i < names.size(); ++i) {
      const Value part = attribute_or_null(interpreter_, value, names[i]);
      if (part == nullptr) return false;
      const size_t positional = names.size() - pattern.kwd_attrs.size();
      parts.emplace_back(
          i < positional ? pattern.patterns[i] : pattern.kwd_patterns[i - positional], part);
    }
    return true;
  }

  std::vector<std::string> positional_names(const Value& type, size_t count) {
    const Value given = attribute_or_null(interpreter_, type, "__match_args__");
    std::vector<Value> elements;
    if (given != nullptr) elements = elements_of(interpreter_, given);
    if (elements.size() < count)
      interpreter_.refuse(ReasonCode::would_raise, "TypeError: too many positional sub-patterns");
    std::vector<std::string> names;
    for (size_t i = 0; i < count; ++i) {
      const auto* known = as<Known>(elements[i]);
      if (known == nullptr || !PyUnicode_Check(known->object.get()))
        interpreter_.refuse(ReasonCode::would_raise, "TypeError: __match_args__ elements");
      names.push_back(text_of(known->object.get()));
    }
    return names;
  }

  Interpreter& interpreter_;
  const syntax::Match& statement_;
  const Value subject_;
  std::vector<std::unique_ptr<syntax::MatchAs>>
      rests_;  // captures of starred parts and rests of mappings
};

}  // namespace

Completion execute_match(Interpreter& interpreter, const syntax::Match& statement) {
  Value subject = evaluate(interpreter, *statement.subject);
  return Matcher(interpreter, statement, std::move(subject)).run();
}

}  // namespace janus::frontend
