// A walk over a syntax tree that shows every statement and expression to the class derived from it.
#pragma once

#include <vector>

#include "syntax/fields.h"
#include "syntax/tree.h"

namespace janus::support {

/// `Derived` has `template <class T> void see(const T& node)` and calls `into` for what is below.
template <class Derived>
class TreeWalk {
 public:
  void visit(const syntax::Expression* node) {
    if (node != nullptr) self().see(*node);
  }
  void visit(const syntax::Statement* node) {
    if (node != nullptr) self().see(*node);
  }
  void visit(const syntax::Pattern* node) {
    if (node != nullptr) into(*node);
  }

  template <class T>
  void into(const T& node) {
    syntax::with_struct(node, [this](const auto& full) { syntax::each_field(full, *this); });
  }

  // What each_field calls for each field.
  void operator()(const char*, syntax::Expression* const& node) { visit(node); }
  void operator()(const char*, syntax::Pattern* const& node) { visit(node); }
  void operator()(const char*, syntax::Statement* const& node) { visit(node); }
  template <class T>
    requires requires(const T& part) { syntax::each_field(part, [](const char*, auto&) {}); }
  void operator()(const char*, const T& part) {
    syntax::each_field(part, *this);
  }
  template <class T>
    requires requires(T* const& part) { syntax::each_field(*part, [](const char*, auto&) {}); }
  void operator()(const char*, T* const& part) {
    if (part != nullptr) syntax::each_field(*part, *this);
  }
  template <class T>
  void operator()(const char* name, const std::vector<T>& parts) {
    for (const T& part : parts) (*this)(name, part);
  }
  template <class T>
  void operator()(const char*, const T&) {}

 private:
  Derived& self() { return static_cast<Derived&>(*this); }
};

}  // namespace janus::support
