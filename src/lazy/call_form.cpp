#include "lazy/call_form.h"

#include <algorithm>
#include <bit>

#include "base/policy.h"
#include "lazy/call_node.h"

namespace janus::lazy {

namespace {

using Words = std::vector<uint64_t>;

void add_text(Words& words, std::string_view text) {
  words.push_back(text.size());
  for (const char each : text) words.push_back(static_cast<unsigned char>(each));
}

/// A constant argument; of sizes, only how many there are.
void add_argument(Words& words, const c10::IValue& value, bool is_size) {
  words.push_back(static_cast<uint64_t>(value.isNone()) | static_cast<uint64_t>(is_size) << 1);
  if (value.isList() && !value.isTensorList() && !value.isOptionalTensorList()) {
    words.push_back(value.toListRef().size());
    if (is_size) return;
    for (const c10::IValue& each : value.toListRef()) add_argument(words, each, false);
  } else if (value.isList()) {
    words.push_back(value.toListRef().size());
  } else if (value.isDouble()) {
    words.push_back(std::bit_cast<uint64_t>(value.toDouble()));
  } else if (value.isBool()) {
    words.push_back(value.toBool() ? 3 : 2);
  } else if (value.isInt()) {
    words.push_back(is_size ? 1 : static_cast<uint64_t>(value.toInt()));
  } else if (value.isString()) {
    add_text(words, value.toStringView());
  }
}

void add_geometry(Words& words, const Geometry& geometry) {
  words.push_back(static_cast<uint64_t>(geometry.dtype) << 16 | geometry.sizes.size());
}

/// All of a kind but sizes and strides.
Words words_of(const CallKind& kind) {
  Words words = {reinterpret_cast<uintptr_t>(kind.rule), kind.key[1]};
  const auto& schema = kind.rule->overload.schema().arguments();
  for (size_t i = 0; i < kind.arguments.size(); ++i)
    add_argument(words, kind.arguments[i], is_size(schema[i]));
  for (size_t k = 0; k < kind.operands.size(); ++k) {
    words.push_back(uint64_t{kind.places[k].argument} << 32 |
                    static_cast<uint32_t>(kind.places[k].element));
    add_geometry(words, kind.operands[k]);
  }
  for (const NumberPlace& each : kind.numbers)
    words.push_back(uint64_t{each.place.argument} << 32 |
                    static_cast<uint32_t>(each.place.element) << 1 | (each.is_wrapped ? 1 : 0));
  for (const ResultShape& each : kind.results) {
    words.push_back(each.is_defined ? 1 : 0);
    add_geometry(words, each.geometry);
  }
  return words;
}

}  // namespace

uint32_t CallForms::number_of(Words words) {
  return numbers_.try_emplace(std::move(words), static_cast<uint32_t>(numbers_.size()))
      .first->second;
}

const CallForm& CallForms::of(const CallKind& kind) {
  auto& form = forms_[&kind];
  if (form != nullptr) return *form;
  auto made = std::make_unique<CallForm>();
  made->number = number_of(words_of(kind));
  made->sizes = sizes_of(kind);
  for (const Geometry& each : kind.operands) made->types.push_back(type_of(each));
  const auto add_written = [&](size_t argument, size_t of_append) {
    const auto place = std::ranges::find(kind.places, argument, &OperandPlace::argument);
    if (place == kind.places.end()) return;
    const auto operand = static_cast<size_t>(place - kind.places.begin());
    made->results.push_back(
        {.type = made->types[operand], .operand = operand, .of_append = of_append});
  };
  for (size_t i = 0; i < kind.results.size(); ++i) {
    if (const auto& written = kind.rule->result_is[i])
      add_written(*written, i);
    else if (kind.results[i].is_defined)
      made->results.push_back(
          {.type = type_of(kind.results[i].geometry), .is_made = true, .of_append = i});
  }
  if (writes_unsaid(kind))
    for (const OperatorRule::UnsaidWrite& each : kind.rule->unsaid)
      add_written(each.argument, each.result_of_native);
  form = std::move(made);
  return *form;
}

uint64_t bits_of(const c10::Scalar& number) {
  if (number.isComplex()) throw NotInGraph("a number is complex");
  return number.isFloatingPoint() ? std::bit_cast<uint64_t>(number.toDouble())
                                  : static_cast<uint64_t>(number.toLong());
}

void VaryingScalars::note(uint32_t form, size_t number, const c10::Scalar& value) {
  std::vector<uint64_t>& values = values_[{form, number}];
  if (values.size() > policy::kFirstValues) return;
  const uint64_t bits = bits_of(value);
  if (std::ranges::find(values, bits) == values.end()) values.push_back(bits);
}

bool VaryingScalars::contains(uint32_t form, size_t number) const {
  const auto found = values_.find({form, number});
  return found != values_.end() && found->second.size() > policy::kFirstValues;
}

}  // namespace janus::lazy
