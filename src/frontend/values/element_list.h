// The elements of a list or tuple as the interpreter knows them: one by one, or, if the list grew
// in a loop or on one side of a branch of the graph, as a symbolic list (symbolic_list.h).
//
// Code that asks a symbolic list for single elements throws CannotMerge: the generation begins anew
// with that loop or branch followed. So code that knows nothing of symbolic lists is right.
#pragma once

#include <memory>
#include <vector>

namespace janus::frontend {

struct AbstractValue;
using Value = std::shared_ptr<AbstractValue>;
struct Rolled;

class ElementList {
 public:
  using iterator = std::vector<Value>::iterator;
  using const_iterator = std::vector<Value>::const_iterator;

  ElementList() = default;
  ElementList(std::vector<Value> known) : known_(std::move(known)) {}  // NOLINT: that is what it is
  ElementList(const_iterator first, const_iterator last) : known_(first, last) {}
  explicit ElementList(std::shared_ptr<const Rolled> rolled) : rolled_(std::move(rolled)) {}

  /// Null: the elements are known one by one.
  const std::shared_ptr<const Rolled>& rolled() const { return rolled_; }
  /// Throws CannotMerge (or Refusal) if they are not.
  const std::vector<Value>& known() const {
    if (rolled_ != nullptr) fail();
    return known_;
  }
  operator const std::vector<Value>&() const { return known(); }  // NOLINT: that is what it is

  bool empty() const { return known().empty(); }
  size_t size() const { return known().size(); }
  const_iterator begin() const { return known().begin(); }
  const_iterator end() const { return known().end(); }
  iterator begin() { return changing().begin(); }
  iterator end() { return changing().end(); }
  const Value& operator[](size_t index) const { return known()[index]; }
  Value& operator[](size_t index) { return changing()[index]; }
  void push_back(Value value) { changing().push_back(std::move(value)); }
  void clear() { changing().clear(); }
  iterator erase(const_iterator place) { return changing().erase(place); }
  iterator erase(const_iterator first, const_iterator last) {
    return changing().erase(first, last);
  }
  iterator insert(const_iterator place, Value value) {
    return changing().insert(place, std::move(value));
  }
  template <class Iterator>
  iterator insert(const_iterator place, Iterator first, Iterator last) {
    return changing().insert(place, first, last);
  }

  friend bool operator==(const ElementList& a, const ElementList& b) {
    return a.rolled_ == b.rolled_ && a.known_ == b.known_;
  }

 private:
  std::vector<Value>& changing() {
    known();
    return known_;
  }
  [[noreturn]] void fail() const;

  std::vector<Value> known_;
  std::shared_ptr<const Rolled> rolled_;
};

}  // namespace janus::frontend
