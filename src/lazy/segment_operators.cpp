#include "lazy/segment_operators.h"

#include "base/check.h"
#include "lazy/call_node.h"

namespace janus::lazy {

using graph::Builder;
using graph::Shape;
using graph::Value;

namespace {

constexpr const char* kMeaning = "meaning";  // an operator's attribute

Value* constant_of(Builder& builder, const c10::Scalar& number) {
  if (number.isFloatingPoint()) return builder.constant(number.toDouble());
  if (number.isBoolean()) return builder.constant(number.toBool());
  return builder.constant(number.toLong());
}

void add_sizes(std::vector<uint64_t>& words, const std::vector<int64_t>& sizes) {
  for (const int64_t size : sizes) words.push_back(static_cast<uint64_t>(size));
}

}  // namespace

std::optional<trace::OperatorId> SegmentOperators::id(std::vector<uint64_t> words,
                                                      std::string_view name,
                                                      const std::function<Meaning()>& meaning) {
  if (const auto found = ids_.find(words); found != ids_.end()) return found->second;
  if (!is_open_) return std::nullopt;
  const trace::OperatorId id = names_->operators.intern(
      {.name = std::string(name),
       .attributes = {{kMeaning, static_cast<int64_t>(meanings_.size())}}});
  meanings_.push_back(meaning());
  ids_.emplace(std::move(words), id);
  return id;
}

std::optional<trace::OperatorId> SegmentOperators::of_call(const CallForm& form,
                                                           const CallKind& kind,
                                                           std::span<const c10::Scalar> numbers) {
  std::vector<uint64_t> words = {form.number};
  if (!sizes_vary_) words.push_back(reinterpret_cast<uintptr_t>(&kind));
  for (size_t i = 0; i < numbers.size(); ++i) {
    const bool is_operand = varies(form, i);
    words.push_back(static_cast<uint64_t>(numbers[i].type()) << 1 | (is_operand ? 1 : 0));
    words.push_back(is_operand ? 0 : bits_of(numbers[i]));
  }
  const auto& schema = kind.rule->overload.schema();
  return id(std::move(words), schema.name(), [&] {
    Meaning meaning{.kind = &kind, .form = &form};
    for (size_t i = 0; i < numbers.size(); ++i)
      meaning.numbers.push_back(varies(form, i) ? std::nullopt : std::optional(numbers[i]));
    return meaning;
  });
}

std::optional<trace::OperatorId> SegmentOperators::of_view(const ViewChain& chain, bool is_write) {
  std::vector<uint64_t> words = {UINT64_MAX, is_write ? uint64_t{1} : 0};
  const std::vector<uint64_t> form = chain.form();
  words.insert(words.end(), form.begin(), form.end());
  if (!sizes_vary_) add_sizes(words, chain.sizes());
  return id(std::move(words), is_write ? "a write to a view" : "a view",
            [&] { return Meaning{.chain = chain, .is_write = is_write}; });
}

std::optional<std::vector<Value*>> SegmentOperators::emit(Builder& builder,
                                                          const trace::Operator& op,
                                                          const Shape& sizes,
                                                          std::span<Value* const> operands,
                                                          std::span<const trace::Pattern> results) {
  const Meaning& meaning = meanings_[static_cast<size_t>(op.attributes.get<int64_t>(kMeaning))];
  try {
    if (meaning.kind != nullptr) return emit_call(builder, meaning, sizes, operands, results);
    const ViewChain chain = meaning.chain->with_sizes(sizes);
    return std::vector<Value*>{meaning.is_write ? chain.write(builder, operands[0], operands[1])
                                                : chain.read(builder, operands[0])};
  } catch (const NotInGraph& error) {
    throw trace::Refusal{cat(op.name, ": ", error.what())};
  } catch (const graph::TypeError& error) {
    throw trace::Refusal{cat(op.name, ": ", error.what())};
  }
}

std::vector<Value*> SegmentOperators::emit_call(Builder& builder, const Meaning& meaning,
                                                const Shape& sizes,
                                                std::span<Value* const> operands,
                                                std::span<const trace::Pattern> results) {
  const CallKind& kind = *meaning.kind;
  const std::span<Value* const> tensors = operands.first(kind.operands.size());
  std::vector<Value*> numbers;
  size_t next = kind.operands.size();
  for (const auto& number : meaning.numbers)
    numbers.push_back(number ? constant_of(builder, *number) : operands[next++]);

  CallSizes varying{.arguments = sizes};
  varying.results.resize(kind.results.size());
  varying.seen.resize(kind.results.size());
  const std::vector<CallForm::Result>& given = meaning.form->results;
  for (size_t i = 0; i < given.size(); ++i) {
    if (!given[i].is_made) continue;
    varying.seen[given[i].of_append] = results[i].type;
    if (!results[i].is_derived()) varying.results[given[i].of_append] = results[i].symbolic();
  }
  const std::vector<Value*> values = append_call(builder, kind, tensors, numbers, varying);
  std::vector<Value*> made;
  for (const CallForm::Result& each : given) {
    // What a call does not say that it writes, it may leave as it was.
    made.push_back(each.of_append < values.size() ? values[each.of_append] : tensors[each.operand]);
  }
  return made;
}

}  // namespace janus::lazy
