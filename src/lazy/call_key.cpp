#include "lazy/call_key.h"

#include <ATen/Context.h>
#include <c10/core/DefaultDtype.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "lazy/storage_node.h"

namespace janus::lazy {

namespace {

/// Keys of dispatch that an ordinary tensor may have; any other says that somebody handles it.
const c10::DispatchKeySet& ordinary_keys() {
  using c10::DispatchKey;
  static const c10::DispatchKeySet keys =
      c10::DispatchKeySet(DispatchKey::CPU) | c10::DispatchKeySet(DispatchKey::AutogradCPU) |
      c10::DispatchKeySet(DispatchKey::ADInplaceOrView) |
      c10::DispatchKeySet(DispatchKey::AutocastCPU) |
      c10::DispatchKeySet(DispatchKey::TESTING_ONLY_GenericWrapper);
  return keys;
}

enum class Tag : uint64_t {
  none,
  undefined,
  wrapped,
  tensor,
  tensors,
  number,
  integer,
  floating,
  boolean,
  text,
  device,
  integers,
  floats,
  flags,
  scalars
};

/// Whether the number is within the range of halves, and so of every wider dtype of floats.
bool fits_any_float(const c10::Scalar& number) {
  constexpr double kLargestHalf = 65504;
  return !number.isComplex() && !(std::abs(number.toDouble()) > kLargestHalf);
}

/// Whether the range of a dtype is smaller than that of halves: integers, and floats of a byte.
bool is_narrow_dtype(at::ScalarType dtype) {
  return at::isIntegralType(dtype, /*includeBool=*/true) || c10::elementSize(dtype) == 1;
}

uint64_t tagged(Tag tag, uint64_t rest = 0) { return static_cast<uint64_t>(tag) | rest << 8; }

}  // namespace

std::optional<c10::Scalar> wrapped_number(const at::Tensor& tensor) {
  const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  if (!impl.is_wrapped_number() || impl.dim() != 0) return std::nullopt;
  if (is_watched(*tensor.storage().unsafeGetStorageImpl())) return std::nullopt;
  switch (tensor.scalar_type()) {
    case at::kDouble:
      return *static_cast<const double*>(tensor.const_data_ptr());
    case at::kLong:
      return *static_cast<const int64_t*>(tensor.const_data_ptr());
    case at::kBool:
      return *static_cast<const bool*>(tensor.const_data_ptr());
    case at::kComplexDouble:
      return *static_cast<const c10::complex<double>*>(tensor.const_data_ptr());
    default:
      return std::nullopt;
  }
}

bool is_ordinary(const at::Tensor& tensor) {
  const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  return (impl.key_set().raw_repr() & ~ordinary_keys().raw_repr()) == 0 &&
         impl.layout() == at::kStrided && impl.has_storage() &&
         !impl.has_symbolic_sizes_strides() && impl.device_type() == c10::kCPU;
}

c10::StorageImpl* storage_of(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.unsafeGetTensorImpl()->has_storage()) return nullptr;
  return tensor.storage().unsafeGetStorageImpl();
}

uint64_t hash_of(std::span<const uint64_t> words) {
  uint64_t hash = 0x9E3779B97F4A7C15ULL ^ words.size();
  for (const uint64_t word : words) {
    hash ^= word;
    hash *= 0xFF51AFD7ED558CCDULL;
    hash ^= hash >> 32;
  }
  return hash;
}

void CallParts::read(const OperatorRule& rule, const at::Stack& stack) {
  words.clear();
  tensors.clear();
  places.clear();
  numbers.clear();
  number_places.clear();
  integers_in = is_narrow = false;
  is_known = true;
  words.push_back(reinterpret_cast<uintptr_t>(&rule));
  words.push_back(static_cast<uint64_t>(c10::get_default_dtype_as_scalartype()) << 1 |
                  (at::globalContext().deterministicAlgorithms() ? 1 : 0));
  const size_t count = rule.writes.size();
  const size_t first = stack.size() - count;
  for (size_t i = 0; i < count && is_known; ++i) {
    const c10::IValue& value = stack[first + i];
    if (value.isTensor())
      add_tensor(value.toTensor(), {.argument = static_cast<uint32_t>(i)});
    else if (value.isTensorList() || value.isOptionalTensorList()) {
      const auto list = value.toListRef();
      words.push_back(tagged(Tag::tensors, list.size()));
      for (size_t k = 0; k < list.size() && is_known; ++k) {
        if (list[k].isNone())
          words.push_back(tagged(Tag::none));
        else
          add_tensor(list[k].toTensor(), {static_cast<uint32_t>(i), static_cast<int32_t>(k)});
      }
    } else {
      add(value, static_cast<uint32_t>(i), rule.varies[i]);
    }
  }
  if (rule.dtype && stack[first + *rule.dtype].isInt())
    is_narrow |= is_narrow_dtype(stack[first + *rule.dtype].toScalarType());
  const bool may_vary =
      rule.takes_any_number && !is_narrow && std::ranges::all_of(numbers, fits_any_float);
  if (may_vary) return;
  for (const c10::Scalar& number : numbers) add_value(number);
}

/// Numbers by which an operator may raise are part of the key.
void CallParts::add_value(const c10::Scalar& number) {
  if (number.isFloatingPoint())
    words.push_back(std::bit_cast<uint64_t>(number.toDouble()));
  else if (number.isComplex())
    is_known = false;
  else
    words.push_back(static_cast<uint64_t>(number.toLong()));
}

void CallParts::add_tensor(const at::Tensor& tensor, OperandPlace place) {
  if (!tensor.defined()) {
    words.push_back(tagged(Tag::undefined));
    return;
  }
  if (const auto number = wrapped_number(tensor)) {
    words.push_back(tagged(Tag::wrapped, static_cast<uint64_t>(number->type())));
    numbers.push_back(*number);
    number_places.push_back({place, true});
    return;
  }
  tensors.push_back(&tensor);
  places.push_back(place);
  if (!is_ordinary(tensor)) {
    is_known = false;
    return;
  }
  const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  const auto dtype = static_cast<uint64_t>(tensor.scalar_type());
  words.push_back(tagged(Tag::tensor, dtype << 16 | static_cast<uint64_t>(impl.dim())));
  for (const int64_t size : impl.sizes()) words.push_back(static_cast<uint64_t>(size));
  for (const int64_t stride : impl.strides()) words.push_back(static_cast<uint64_t>(stride));
  integers_in |= at::isIntegralType(tensor.scalar_type(), /*includeBool=*/true);
  is_narrow |= is_narrow_dtype(tensor.scalar_type());
}

void CallParts::add_number(const c10::Scalar& number, uint32_t argument) {
  if (number.isSymbolic()) {
    is_known = false;
    return;
  }
  words.push_back(tagged(Tag::number, static_cast<uint64_t>(number.type())));
  numbers.push_back(number);
  number_places.push_back({{.argument = argument}, false});
}

template <class List>
void CallParts::add_numbers(const List& list, uint64_t tag) {
  words.push_back(tag | list.size() << 8);
  for (const auto& each : list) {
    if constexpr (std::is_same_v<std::decay_t<decltype(each)>, double>)
      words.push_back(std::bit_cast<uint64_t>(each));
    else
      words.push_back(static_cast<uint64_t>(each));
  }
}

void CallParts::add(const c10::IValue& value, uint32_t argument, bool varies) {
  if (varies && value.isScalar()) {
    add_number(value.toScalar(), argument);
  } else if (value.isNone()) {
    words.push_back(tagged(Tag::none));
  } else if (value.isInt()) {
    words.push_back(tagged(Tag::integer));
    words.push_back(static_cast<uint64_t>(value.toInt()));
  } else if (value.isDouble()) {
    words.push_back(tagged(Tag::floating));
    words.push_back(std::bit_cast<uint64_t>(value.toDouble()));
  } else if (value.isBool()) {
    words.push_back(tagged(Tag::boolean, value.toBool() ? 1 : 0));
  } else if (value.isIntList()) {
    add_numbers(value.toIntVector(), tagged(Tag::integers));
  } else if (value.isDoubleList()) {
    add_numbers(value.toDoubleVector(), tagged(Tag::floats));
  } else if (value.isBoolList()) {
    const auto flags = value.toBoolList();
    words.push_back(tagged(Tag::flags, flags.size()));
    for (size_t i = 0; i < flags.size(); ++i) words.push_back(flags.get(i) ? 1 : 0);
  } else if (value.isString()) {
    const std::string_view text = value.toStringView();
    words.push_back(tagged(Tag::text, text.size()));
    for (const char each : text) words.push_back(static_cast<unsigned char>(each));
  } else if (value.isDevice()) {
    const c10::Device device = value.toDevice();
    is_known &= device.is_cpu();
    words.push_back(tagged(Tag::device, static_cast<uint64_t>(device.index()) & 0xFF));
  } else {
    is_known = false;
  }
}

}  // namespace janus::lazy
