#include "graph/attribute.h"

#include <algorithm>
#include <bit>

#include "graph/quote.h"

namespace janus::graph {
namespace {

bool same_bits(double a, double b) {
  return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b) || (a != a && b != b);
}

template <class... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <class... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;

template <class List, class Print>
void print_list(std::ostream& out, std::string_view prefix, const List& list, Print&& print) {
  out << prefix << '[';
  bool first = true;
  for (const auto& element : list) {
    if (!first) out << ',';
    first = false;
    print(element);
  }
  out << ']';
}

}  // namespace

bool identical(const AttributeValue& a, const AttributeValue& b) {
  if (a.index() != b.index()) return false;
  if (const double* x = std::get_if<double>(&a)) return same_bits(*x, std::get<double>(b));
  if (const auto* x = std::get_if<std::vector<double>>(&a)) {
    const auto& y = std::get<std::vector<double>>(b);
    return std::equal(x->begin(), x->end(), y.begin(), y.end(), same_bits);
  }
  return a == b;
}

const AttributeValue* Attributes::find(std::string_view name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? nullptr : &found->second;
}

void Attributes::erase(std::string_view name) {
  if (const auto found = values_.find(name); found != values_.end()) values_.erase(found);
}

bool operator==(const Attributes& a, const Attributes& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.first == y.first && identical(x.second, y.second);
  });
}

std::ostream& operator<<(std::ostream& out, const AttributeValue& value) {
  std::visit(Overloaded{
                 [&](None) { out << "none"; },
                 [&](bool flag) { out << (flag ? "true" : "false"); },
                 [&](int64_t number) { out << number; },
                 [&](double number) { out << number_text(number); },
                 [&](const std::string& text) { out << quoted(text); },
                 [&](DType dtype) { out << name(dtype); },
                 [&](const Dim& dim) { out << "dim(" << dim << ')'; },
                 [&](const Shape& shape) {
                   print_list(out, "", shape, [&](const Dim& dim) { out << dim; });
                 },
                 [&](const std::vector<double>& list) {
                   print_list(out, "f", list, [&](double number) { out << number_text(number); });
                 },
                 [&](const std::vector<bool>& list) {
                   print_list(out, "b", list, [&](bool flag) { out << (flag ? 1 : 0); });
                 },
             },
             value);
  return out;
}

}  // namespace janus::graph
