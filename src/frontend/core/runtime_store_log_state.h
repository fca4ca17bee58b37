// The store log of objects that are discovered at run time, as the rooms before `recursion` see it.
// recursion/runtime_store_log.h implements it.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "frontend/values/value.h"

namespace janus::frontend {

class RuntimeStoreLogState {
 public:
  RuntimeStoreLogState() = default;
  RuntimeStoreLogState(const RuntimeStoreLogState&) = delete;
  RuntimeStoreLogState& operator=(const RuntimeStoreLogState&) = delete;
  virtual ~RuntimeStoreLogState() = default;

  /// Whether writes under that name were announced.
  virtual bool expects(const std::string& name) const = 0;
  /// object.name = value, as an object of any of these classes, one of which it is, does it.
  virtual void write(const std::shared_ptr<RuntimeObject>& object, const Classes& classes,
                     const std::string& name, const Value& value) = 0;
  /// object.name; null if the run has not written that name yet. `at_entry`: what the object held
  /// before the call.
  virtual Value read(const RuntimeObject& object, const std::string& name, int fact,
                     const std::function<Value()>& at_entry) = 0;
  /// Whether the run has written the name to the object: a flag; null if to no object yet.
  virtual graph::Value* has(const RuntimeObject& object, const std::string& name) = 0;
  /// Refuses to go on with an attribute of an object that was reached by its path if the run may
  /// have written it.
  virtual void check_unwritten(PyTypeObject* type, const std::string& name) const = 0;
  /// Whether the list is a log.
  virtual bool is_log(const Sequence& list) const = 0;
};

}  // namespace janus::frontend
