// functools, itertools, operator, heapq, bisect, math.prod: functions of Python's library that call
// or rearrange what they are given.
#include "frontend/core/class_of.h"
#include "frontend/core/flags.h"
#include "frontend/core/known_callables.h"
#include "frontend/core/operations.h"
#include "frontend/core/torch_objects.h"
#include "frontend/language/numbers.h"
#include "frontend/language/operators.h"
#include "frontend/library/special_callables.h"
#include "frontend/objects/attributes.h"
#include "frontend/objects/folding.h"
#include "frontend/objects/iteration.h"
#include "frontend/objects/subscripts.h"
#include "frontend/values/constants.h"
#include "frontend/values/make.h"
#include "frontend/values/number_kinds.h"

namespace janus::frontend {

using python::Object;
using syntax::CompareOperator;
using syntax::Operator;
using syntax::UnaryOperator;

namespace {

using Arguments = CallArguments;

Value call_one(Interpreter& interpreter, const Value& callable, std::vector<Value> values) {
  Arguments arguments;
  arguments.positional = std::move(values);
  return call(interpreter, callable, arguments);
}

int64_t known_integer(Interpreter& interpreter, const Value& value) {
  const int64_t number = PyLong_AsLongLong(folded(interpreter, value).get());
  if (PyErr_Occurred() != nullptr) interpreter.refuse_raised();
  return number;
}

// --- functools ----------------------------------------------------------------------------------

Value call_reduce(Interpreter& interpreter, const Arguments& arguments) {
  const auto& given = arguments.positional;
  if (given.size() < 2 || given.size() > 3 || !arguments.keywords.empty()) return nullptr;
  auto elements = iterate(interpreter, given[1]);
  Value total = given.size() > 2 ? given[2] : elements->next();
  if (total == nullptr)
    interpreter.refuse(ReasonCode::would_raise, "TypeError: reduce() of an empty iterable");
  while (Value element = elements->next())
    total = call_one(interpreter, given[0], {total, element});
  return total;
}

// --- itertools ----------------------------------------------------------------------------------

/// Calls the function of itertools on positions, and puts the elements in their place: for those
/// that only rearrange.
Value rearranged(Interpreter& interpreter, const char* path, const Arguments& arguments,
                 size_t iterables) {
  const auto& given = arguments.positional;
  auto elements = std::make_shared<std::vector<std::vector<Value>>>();
  Object positions = interpreter.must(PyTuple_New(static_cast<Py_ssize_t>(given.size())));
  for (size_t i = 0; i < given.size(); ++i) {
    Object argument;
    if (i < iterables) {
      elements->push_back(elements_of(interpreter, given[i]));
      argument =
          python::call(reinterpret_cast<PyObject*>(&PyRange_Type),
                       {python::integer(static_cast<int64_t>(elements->back().size())).get()});
    } else {
      argument = folded(interpreter, given[i]);
    }
    PyTuple_SET_ITEM(positions.get(), static_cast<Py_ssize_t>(i), argument.release());
  }
  Object keywords = interpreter.must(PyDict_New());
  for (const auto& [name, value] : arguments.keywords)
    python::check_status(
        PyDict_SetItemString(keywords.get(), name.c_str(), folded(interpreter, value).get()));
  const Object iterator =
      interpreter.must(PyObject_Call(imported(path), positions.get(), keywords.get()));
  const bool many = iterables == given.size() && iterables > 1;
  return std::make_shared<Iterator>([&interpreter, iterator, elements, many]() -> Value {
    const Object tuple = Object::steal(PyIter_Next(iterator.get()));
    if (!tuple) {
      if (PyErr_Occurred() != nullptr) interpreter.refuse_raised();
      return nullptr;
    }
    std::vector<Value> parts;
    const Py_ssize_t count = PyTuple_GET_SIZE(tuple.get());
    for (Py_ssize_t i = 0; i < count; ++i) {
      const auto& from = (*elements)[many ? static_cast<size_t>(i) : 0];
      parts.push_back(from[PyLong_AsSize_t(PyTuple_GET_ITEM(tuple.get(), i))]);
    }
    return make_tuple(std::move(parts));
  });
}

Value call_product(Interpreter& interpreter, const Arguments& arguments) {
  if (!arguments.keywords.empty() && arguments.positional.size() != 1) return nullptr;
  return rearranged(interpreter, "itertools.product", arguments, arguments.positional.size());
}
Value call_combinations(Interpreter& interpreter, const Arguments& arguments) {
  return arguments.positional.empty()
             ? nullptr
             : rearranged(interpreter, "itertools.combinations", arguments, 1);
}
Value call_permutations(Interpreter& interpreter, const Arguments& arguments) {
  return arguments.positional.empty()
             ? nullptr
             : rearranged(interpreter, "itertools.permutations", arguments, 1);
}
Value call_pairwise(Interpreter& interpreter, const Arguments& arguments) {
  if (arguments.positional.size() != 1) return nullptr;
  auto elements = iterate(interpreter, arguments.positional[0]);
  auto before = std::make_shared<Value>();
  return std::make_shared<Iterator>([elements, before]() -> Value {
    if (*before == nullptr) *before = elements->next();
    Value element = *before == nullptr ? nullptr : elements->next();
    if (element == nullptr) return *before = nullptr;
    return make_tuple({std::exchange(*before, element), element});
  });
}

Value call_zip_longest(Interpreter& interpreter, const Arguments& arguments) {
  Value fill = interpreter.none();
  for (const auto& [name, value] : arguments.keywords) {
    if (name != "fillvalue") return nullptr;
    fill = value;
  }
  auto columns = std::make_shared<std::vector<std::shared_ptr<Iterator>>>();
  for (const Value& iterable : arguments.positional)
    columns->push_back(iterate(interpreter, iterable));
  auto active = std::make_shared<size_t>(columns->size());
  return std::make_shared<Iterator>([columns, active, fill]() -> Value {
    if (*active == 0) return nullptr;
    std::vector<Value> row;
    for (std::shared_ptr<Iterator>& column : *columns) {
      Value element = column == nullptr ? nullptr : column->next();
      if (column != nullptr && element == nullptr) {
        column = nullptr;
        if (--*active == 0) return nullptr;
      }
      row.push_back(element == nullptr ? fill : element);
    }
    return make_tuple(std::move(row));
  });
}

Value call_accumulate(Interpreter& interpreter, const Arguments& arguments) {
  const auto& given = arguments.positional;
  const Value* initial = arguments.keyword("initial");
  const Value* function = given.size() > 1 ? &given[1] : arguments.keyword("func");
  if (given.empty() || given.size() > 2) return nullptr;
  auto elements = iterate(interpreter, given[0]);
  auto total = std::make_shared<Value>();
  auto first =
      std::make_shared<Value>(initial != nullptr && !is_none(*initial) ? *initial : nullptr);
  const Value by = function != nullptr && !is_none(*function) ? *function : nullptr;
  return std::make_shared<Iterator>([&interpreter, elements, total, first, by]() -> Value {
    if (*first != nullptr) return *total = std::exchange(*first, nullptr);
    Value element = elements->next();
    if (element == nullptr) return nullptr;
    if (*total == nullptr) return *total = element;
    return *total = by != nullptr ? call_one(interpreter, by, {*total, element})
                                  : binary(interpreter, Operator::Add, *total, element);
  });
}

Value call_islice(Interpreter& interpreter, const Arguments& arguments) {
  const auto& given = arguments.positional;
  if (given.size() < 2 || given.size() > 4 || !arguments.keywords.empty()) return nullptr;
  const auto bound = [&](size_t index, int64_t otherwise) {
    return index < given.size() && !is_none(given[index]) ? known_integer(interpreter, given[index])
                                                          : otherwise;
  };
  const bool only_stop = given.size() == 2;
  const int64_t start = only_stop ? 0 : bound(1, 0);
  const int64_t stop = bound(only_stop ? 1 : 2, INT64_MAX), step = bound(3, 1);
  if (start < 0 || stop < 0 || step < 1)
    interpreter.refuse(ReasonCode::would_raise, "ValueError: bounds of islice()");
  auto elements = std::make_shared<std::shared_ptr<Iterator>>(iterate(interpreter, given[0]));
  auto at = std::make_shared<int64_t>(0);
  auto next = std::make_shared<int64_t>(start);
  return std::make_shared<Iterator>([elements, at, next, stop, step]() -> Value {
    // What lies in front of the next element is taken, even where that is behind the bound.
    Value element;
    do {
      const bool is_over = *elements == nullptr || (*at >= stop && *at >= *next);
      element = is_over ? nullptr : (*elements)->next();
      if (element == nullptr) {
        elements->reset();
        return nullptr;
      }
    } while ((*at)++ < *next);
    *next = step > stop - *next ? stop : *next + step;
    return element;
  });
}

Value call_repeat(Interpreter& interpreter, const Arguments& arguments) {
  const auto& given = arguments.positional;
  const Value* times = given.size() > 1 ? &given[1] : arguments.keyword("times");
  if (given.empty() || given.size() > 2) return nullptr;
  const Value element = given[0];
  auto left = std::make_shared<int64_t>(times != nullptr ? known_integer(interpreter, *times) : -1);
  const bool endless = times == nullptr;
  return std::make_shared<Iterator>(
      [element, left, endless]() -> Value { return endless || (*left)-- > 0 ? element : nullptr; });
}

Value call_count(Interpreter& interpreter, const Arguments& arguments) {
  const auto& given = arguments.positional;
  const Value* start = !given.empty() ? &given[0] : arguments.keyword("start");
  const Value* step = given.size() > 1 ? &given[1] : arguments.keyword("step");
  auto at = std::make_shared<Value>(start != nullptr ? *start : interpreter.integer(0));
  const Value by = step != nullptr ? *step : interpreter.integer(1);
  return std::make_shared<Iterator>([&interpreter, at, by]() -> Value {
    Value now = *at;
    *at = binary(interpreter, Operator::Add, now, by);
    return now;
  });
}

Value call_starmap(Interpreter& interpreter, const Arguments& arguments) {
  if (arguments.positional.size() != 2) return nullptr;
  const Value function = arguments.positional[0];
  auto elements = iterate(interpreter, arguments.positional[1]);
  return std::make_shared<Iterator>([&interpreter, function, elements]() -> Value {
    Value element = elements->next();
    return element == nullptr ? nullptr
                              : call_one(interpreter, function, elements_of(interpreter, element));
  });
}

/// Elements that are kept once they were taken, each when it is first asked for.
class Kept {
 public:
  explicit Kept(std::shared_ptr<Iterator> elements) : elements_(std::move(elements)) {}
  /// Null: there are not so many.
  Value at(size_t position) {
    while (kept_.size() <= position) {
      Value element = elements_ == nullptr ? nullptr : elements_->next();
      if (element == nullptr) {
        elements_.reset();
        return nullptr;
      }
      kept_.push_back(std::move(element));
    }
    return kept_[position];
  }

 private:
  std::shared_ptr<Iterator> elements_;
  std::vector<Value> kept_;
};

Value call_cycle(Interpreter& interpreter, const Arguments& arguments) {
  if (arguments.positional.size() != 1) return nullptr;
  const auto elements = std::make_shared<Kept>(iterate(interpreter, arguments.positional[0]));
  const auto at = std::make_shared<size_t>(0);
  return std::make_shared<Iterator>([elements, at]() -> Value {
    if (elements->at(*at) == nullptr) *at = 0;
    return elements->at((*at)++);
  });
}

/// Whether the predicate holds, where it is known; null: the elements themselves.
bool holds(Interpreter& interpreter, const Value& predicate, const Value& element) {
  const Value outcome = is_none(predicate) ? element : call_one(interpreter, predicate, {element});
  return truth(interpreter, outcome, -1);
}

Value call_takewhile(Interpreter& interpreter, const Arguments& arguments) {
  if (arguments.positional.size() != 2) return nullptr;
  const Value predicate = arguments.positional[0];
  auto elements = iterate(interpreter, arguments.positional[1]);
  const auto ended = std::make_shared<bool>(false);
  return std::make_shared<Iterator>([&interpreter, predicate, elements, ended]() -> Value {
    Value element = *ended ? nullptr : elements->next();
    if (element != nullptr && !holds(interpreter, predicate, element)) element = nullptr;
    *ended = element == nullptr;
    return element;
  });
}

Value call_dropwhile(Interpreter& interpreter, const Arguments& arguments) {
  if (arguments.positional.size() != 2) return nullptr;
  const Value predicate = arguments.positional[0];
  auto elements = iterate(interpreter, arguments.positional[1]);
  const auto begun = std::make_shared<bool>(false);
  return std::make_shared<Iterator>([&interpreter, predicate, elements, begun]() -> Value {
    Value element = elements->next();
    while (element != nullptr && !*begun && holds(interpreter, predicate, element))
      element = elements->next();
    *begun = true;
    return element;
  });
}

Value call_filterfalse(Interpreter& interpreter, const Arguments& arguments) {
  if (arguments.positional.size() != 2) return nullptr;
  const Value predicate = arguments.positional[0];
  auto elements = iterate(interpreter, arguments.positional[1]);
  return std::make_shared<Iterator>([&interpreter, predicate, elements]() -> Value {
    Value element = elements->next();
    while (element != nullptr && holds(interpreter, predicate, element)) element = elements->next();
    return element;
  });
}

Value call_compress(Interpreter& interpreter, const Arguments& arguments) {
  if (arguments.positional.size() != 2 || !arguments.keywords.empty()) return nullptr;
  auto elements = iterate(interpreter, arguments.positional[0]);
  auto selectors = iterate(interpreter, arguments.positional[1]);
  return std::make_shared<Iterator>([&interpreter, elements, selectors]() -> Value {
    for (;;) {
      Value element = elements->next();
      const Value selector = element == nullptr ? nullptr : selectors->next();
      if (selector == nullptr) return nullptr;
      if (truth(interpreter, selector, -1)) return element;
    }
  });
}

/// Groups of neighbours with one key, as far as it is known which keys are equal.
class Groups {
 public:
  Groups(Interpreter& interpreter, std::shared_ptr<Iterator> elements, Value key)
      : interpreter_(interpreter), elements_(std::move(elements)), key_(std::move(key)) {}

  /// Goes on to the next group; null: there is none.
  Value next_key() {
    while (current_ != nullptr && is_current()) ++at_;
    if (elements_.at(at_) == nullptr) return nullptr;
    ++number_;
    return current_ = key();
  }
  size_t number() const { return number_; }
  /// The next element of the group; null: it has no more, or another one was begun.
  Value next_of(size_t group) {
    return group == number_ && is_current() ? elements_.at(at_++) : nullptr;
  }

 private:
  Value key() {
    if (keys_.size() <= at_) {
      const Value element = elements_.at(at_);
      keys_.push_back(is_none(key_) ? element : call_one(interpreter_, key_, {element}));
    }
    return keys_[at_];
  }
  bool is_current() {
    if (elements_.at(at_) == nullptr) return false;
    const Value of_element = key();
    return of_element == current_ || holds(interpreter_, current_, CompareOperator::Eq, of_element);
  }

  Interpreter& interpreter_;
  Kept elements_;
  const Value key_;
  std::vector<Value> keys_;
  size_t at_ = 0, number_ = 0;
  Value current_;
};

Value call_groupby(Interpreter& interpreter, const Arguments& arguments) {
  const auto& given = arguments.positional;
  const Value* key = given.size() > 1 ? &given[1] : arguments.keyword("key");
  if (given.empty() || given.size() > 2) return nullptr;
  const auto groups = std::make_shared<Groups>(interpreter, iterate(interpreter, given[0]),
                                               key != nullptr ? *key : interpreter.none());
  return std::make_shared<Iterator>([groups]() -> Value {
    const Value key = groups->next_key();
    if (key == nullptr) return nullptr;
    const size_t group = groups->number();
    return make_tuple({key, std::make_shared<Iterator>(
                                [groups, group]() -> Value { return groups->next_of(group); })});
  });
}

// --- heapq --------------------------------------------------------------------------------------

/// The first few of the elements in order, as heapq says.
template <bool largest>
Value call_extremes(Interpreter& interpreter, const Arguments& arguments) {
  const auto& given = arguments.positional;
  if (given.size() < 2 || given.size() > 3) return nullptr;
  const Value* key = given.size() > 2 ? &given[2] : arguments.keyword("key");
  Arguments order;
  order.positional = {given[1]};
  if (key != nullptr) order.keywords.emplace_back("key", *key);
  order.keywords.emplace_back("reverse", interpreter.boolean(largest));
  const Value sorted =
      call(interpreter, interpreter.constant_borrowed(imported("builtins.sorted")), order);
  auto count = std::make_shared<SliceValue>();
  count->start = count->step = interpreter.none();
  count->stop = interpreter.integer(std::max<int64_t>(known_integer(interpreter, given[0]), 0));
  return subscript(interpreter, sorted, count);
}

// --- operator -----------------------------------------------------------------------------------

/// Of what changes an operand: with other arguments there is nothing else to do than to give up.
void expect_operands(const Frames& frames, const Arguments& arguments, size_t count) {
  if (arguments.positional.size() != count || !arguments.keywords.empty())
    frames.refuse(ReasonCode::unsupported_argument, "arguments of an operator");
}

template <Operator op>
Value call_binary(Interpreter& interpreter, const Arguments& arguments) {
  if (arguments.positional.size() != 2) return nullptr;
  return binary(interpreter, op, arguments.positional[0], arguments.positional[1]);
}

template <CompareOperator op>
Value call_compare(Interpreter& interpreter, const Arguments& arguments) {
  if (arguments.positional.size() != 2) return nullptr;
  return compare(interpreter, op, arguments.positional[0], arguments.positional[1]);
}

/// `a op= b` as a call: it changes the given object itself.
template <Operator op>
Value call_in_place(Interpreter& interpreter, const Arguments& arguments) {
  expect_operands(interpreter, arguments, 2);
  return binary_in_place(interpreter, op, arguments.positional[0], arguments.positional[1]);
}

/// An addition of sequences only.
template <Handler add>
Value call_concatenation(Interpreter& interpreter, const Arguments& arguments) {
  for (const Value& operand : arguments.positional) {
    const PyTypeObject* const type = class_of(operand);
    if (type == nullptr || type->tp_as_sequence == nullptr ||
        type->tp_as_sequence->sq_concat == nullptr)
      interpreter.refuse(ReasonCode::expression, "operator.concat() of other than sequences");
  }
  return add(interpreter, arguments);
}

template <UnaryOperator op>
Value call_unary(Interpreter& interpreter, const Arguments& arguments) {
  if (arguments.positional.size() != 1) return nullptr;
  return unary(interpreter, op, arguments.positional[0]);
}

/// operator.call(callable, ...)
Value call_callable(Interpreter& interpreter, const Arguments& arguments) {
  if (arguments.positional.empty()) return nullptr;
  Arguments given = arguments;
  given.positional.erase(given.positional.begin());
  return call(interpreter, arguments.positional[0], given);
}

Value call_truth(Interpreter& interpreter, const Arguments& arguments) {
  if (arguments.positional.size() != 1) return nullptr;
  return flag_value(interpreter, truth_of(interpreter, arguments.positional[0]));
}

template <bool expected>
Value call_is(Interpreter& interpreter, const Arguments& arguments) {
  if (arguments.positional.size() != 2) return nullptr;
  return interpreter.boolean(
      identical(interpreter, arguments.positional[0], arguments.positional[1]) == expected);
}

Value call_contains(Interpreter& interpreter, const Arguments& arguments) {
  if (arguments.positional.size() != 2) return nullptr;
  return compare(interpreter, CompareOperator::In, arguments.positional[1],
                 arguments.positional[0]);
}

Value call_setitem(Interpreter& interpreter, const Arguments& arguments) {
  expect_operands(interpreter, arguments, 3);
  write_subscript(interpreter, arguments.positional[0], arguments.positional[1],
                  arguments.positional[2]);
  return interpreter.none();
}

Value call_delitem(Interpreter& interpreter, const Arguments& arguments) {
  expect_operands(interpreter, arguments, 2);
  delete_subscript(interpreter, arguments.positional[0], arguments.positional[1]);
  return interpreter.none();
}

Value call_methodcaller(Interpreter& interpreter, const Arguments& arguments) {
  if (arguments.positional.empty()) return nullptr;
  const std::string name = text_of(folded(interpreter, arguments.positional[0]).get());
  if (name.empty()) return nullptr;
  Arguments given = arguments;
  given.positional.erase(given.positional.begin());
  return std::make_shared<Native>(
      "methodcaller", [name, given](Interpreter& inner, const Arguments& object) -> Value {
        if (object.positional.size() != 1)
          inner.refuse(ReasonCode::would_raise, "TypeError: arguments of a methodcaller");
        return call(inner, attribute(inner, object.positional[0], name), given);
      });
}

Value call_getitem(Interpreter& interpreter, const Arguments& arguments) {
  if (arguments.positional.size() != 2) return nullptr;
  return subscript(interpreter, arguments.positional[0], arguments.positional[1]);
}

Value call_itemgetter(Interpreter&, const Arguments& arguments) {
  const std::vector<Value> keys = arguments.positional;
  if (keys.empty()) return nullptr;
  return std::make_shared<Native>(
      "itemgetter", [keys](Interpreter& inner, const Arguments& given) -> Value {
        if (given.positional.size() != 1)
          inner.refuse(ReasonCode::would_raise, "TypeError: arguments of an itemgetter");
        std::vector<Value> items;
        for (const Value& key : keys) items.push_back(subscript(inner, given.positional[0], key));
        return items.size() == 1 ? items[0] : make_tuple(std::move(items));
      });
}

Value call_attrgetter(Interpreter& interpreter, const Arguments& arguments) {
  if (arguments.positional.size() != 1) return nullptr;
  std::string path = text_of(folded(interpreter, arguments.positional[0]).get());
  if (path.empty()) return nullptr;
  return std::make_shared<Native>(
      "attrgetter", [path](Interpreter& inner, const Arguments& given) -> Value {
        if (given.positional.size() != 1)
          inner.refuse(ReasonCode::would_raise, "TypeError: arguments of an attrgetter");
        Value value = given.positional[0];
        for (size_t start = 0; start <= path.size();) {
          const size_t end = std::min(path.find('.', start), path.size());
          value = attribute(inner, value, path.substr(start, end - start));
          start = end + 1;
        }
        return value;
      });
}

// --- bisect -------------------------------------------------------------------------------------

/// How many of the sorted elements the comparison with the number, on the side that is said, holds
/// for; null if they are not sorted: then only the search itself tells.
Value count_of_holding(Interpreter& interpreter, const std::vector<Value>& elements,
                       const Value& number, bool number_first) {
  Value count = interpreter.integer(0);
  for (size_t i = 0; i < elements.size(); ++i) {
    if (!is_number(elements[i]) || as<Known>(elements[i]) == nullptr) return nullptr;
    if (i > 0 && !holds(interpreter, elements[i - 1], CompareOperator::LtE, elements[i]))
      return nullptr;
    const Value less = number_first
                           ? compare(interpreter, CompareOperator::Lt, number, elements[i])
                           : compare(interpreter, CompareOperator::Lt, elements[i], number);
    const Value counted = as<Known>(less) != nullptr
                              ? interpreter.integer(truth(interpreter, less, -1) ? 1 : 0)
                              : convert_number(interpreter, less, graph::Type::Kind::i64);
    count = binary(interpreter, Operator::Add, count, counted);
  }
  return count;
}

Value call_bisect_left(Interpreter& interpreter, const Arguments& arguments) {
  const auto& given = arguments.positional;
  if (given.size() != 2 || !arguments.keywords.empty() || !is_number(given[1])) return nullptr;
  return count_of_holding(interpreter, elements_of(interpreter, given[0]), given[1], false);
}

/// Behind all elements but those that the number is less than: NaN goes to the end.
Value call_bisect_right(Interpreter& interpreter, const Arguments& arguments) {
  const auto& given = arguments.positional;
  if (given.size() != 2 || !arguments.keywords.empty() || !is_number(given[1])) return nullptr;
  const std::vector<Value> elements = elements_of(interpreter, given[0]);
  const Value behind = count_of_holding(interpreter, elements, given[1], true);
  if (behind == nullptr) return nullptr;
  return binary(interpreter, Operator::Sub,
                interpreter.integer(static_cast<int64_t>(elements.size())), behind);
}

/// insort(list, element): inserts it at that place.
template <Handler place>
Value call_insort(Interpreter& interpreter, const Arguments& arguments) {
  const Value at = place(interpreter, arguments);
  if (at == nullptr) return nullptr;
  return call(interpreter, attribute(interpreter, arguments.positional[0], "insert"),
              {.positional = {at, arguments.positional[1]}, .keywords = {}});
}

// --- builtins -----------------------------------------------------------------------------------

/// math.prod(iterable, start=…) of numbers.
Value call_product_of(Interpreter& interpreter, const Arguments& arguments) {
  if (arguments.positional.size() != 1) return nullptr;
  const Value* start = arguments.keyword("start");
  Value product = start != nullptr ? *start : interpreter.integer(1);
  for (const Value& factor : elements_of(interpreter, arguments.positional[0])) {
    if (!is_number(factor)) return nullptr;
    product = binary(interpreter, Operator::Mult, product, factor);
  }
  return product;
}

/// vars(object)
Value call_vars(Interpreter& interpreter, const Arguments& arguments) {
  if (arguments.positional.size() != 1) return nullptr;
  return attribute(interpreter, arguments.positional[0], "__dict__");
}

}  // namespace

std::span<const SpecialCallable> standard_library_callables() {
  static constexpr SpecialCallable table[] = {
      {"functools.reduce", call_reduce},
      {"itertools.product", call_product},
      {"itertools.combinations", call_combinations},
      {"itertools.permutations", call_permutations},
      {"itertools.pairwise", call_pairwise},
      {"itertools.zip_longest", call_zip_longest},
      {"itertools.accumulate", call_accumulate},
      {"itertools.islice", call_islice},
      {"itertools.repeat", call_repeat},
      {"itertools.count", call_count},
      {"itertools.starmap", call_starmap},
      {"itertools.cycle", call_cycle},
      {"itertools.takewhile", call_takewhile},
      {"itertools.dropwhile", call_dropwhile},
      {"itertools.filterfalse", call_filterfalse},
      {"itertools.compress", call_compress},
      {"itertools.groupby", call_groupby},
      {"heapq.nlargest", call_extremes<true>},
      {"heapq.nsmallest", call_extremes<false>},
      {"math.prod", call_product_of},
      {"operator.add", call_binary<Operator::Add>},
      {"operator.sub", call_binary<Operator::Sub>},
      {"operator.mul", call_binary<Operator::Mult>},
      {"operator.truediv", call_binary<Operator::Div>},
      {"operator.floordiv", call_binary<Operator::FloorDiv>},
      {"operator.mod", call_binary<Operator::Mod>},
      {"operator.pow", call_binary<Operator::Pow>},
      {"operator.matmul", call_binary<Operator::MatMult>},
      {"operator.or_", call_binary<Operator::BitOr>},
      {"operator.and_", call_binary<Operator::BitAnd>},
      {"operator.xor", call_binary<Operator::BitXor>},
      {"operator.lshift", call_binary<Operator::LShift>},
      {"operator.rshift", call_binary<Operator::RShift>},
      {"operator.concat", call_concatenation<call_binary<Operator::Add>>},
      {"operator.neg", call_unary<UnaryOperator::USub>},
      {"operator.pos", call_unary<UnaryOperator::UAdd>},
      {"operator.invert", call_unary<UnaryOperator::Invert>},
      {"operator.inv", call_unary<UnaryOperator::Invert>},
      {"operator.not_", call_unary<UnaryOperator::Not>},
      {"operator.iadd", call_in_place<Operator::Add>},
      {"operator.isub", call_in_place<Operator::Sub>},
      {"operator.imul", call_in_place<Operator::Mult>},
      {"operator.itruediv", call_in_place<Operator::Div>},
      {"operator.ifloordiv", call_in_place<Operator::FloorDiv>},
      {"operator.imod", call_in_place<Operator::Mod>},
      {"operator.ipow", call_in_place<Operator::Pow>},
      {"operator.imatmul", call_in_place<Operator::MatMult>},
      {"operator.ior", call_in_place<Operator::BitOr>},
      {"operator.iand", call_in_place<Operator::BitAnd>},
      {"operator.ixor", call_in_place<Operator::BitXor>},
      {"operator.ilshift", call_in_place<Operator::LShift>},
      {"operator.irshift", call_in_place<Operator::RShift>},
      {"operator.iconcat", call_concatenation<call_in_place<Operator::Add>>},
      {"operator.call", call_callable},
      {"operator.truth", call_truth},
      {"operator.is_", call_is<true>},
      {"operator.is_not", call_is<false>},
      {"operator.contains", call_contains},
      {"operator.setitem", call_setitem},
      {"operator.delitem", call_delitem},
      {"operator.methodcaller", call_methodcaller},
      {"operator.lt", call_compare<CompareOperator::Lt>},
      {"operator.le", call_compare<CompareOperator::LtE>},
      {"operator.gt", call_compare<CompareOperator::Gt>},
      {"operator.ge", call_compare<CompareOperator::GtE>},
      {"operator.eq", call_compare<CompareOperator::Eq>},
      {"operator.ne", call_compare<CompareOperator::NotEq>},
      {"operator.getitem", call_getitem},
      {"operator.itemgetter", call_itemgetter},
      {"operator.attrgetter", call_attrgetter},
      {"bisect.bisect_right", call_bisect_right},
      {"bisect.bisect", call_bisect_right},
      {"bisect.bisect_left", call_bisect_left},
      {"bisect.insort", call_insort<call_bisect_right>},
      {"bisect.insort_right", call_insort<call_bisect_right>},
      {"bisect.insort_left", call_insort<call_bisect_left>},
      {"builtins.vars", call_vars},
  };
  return table;
}

}  // namespace janus::frontend
