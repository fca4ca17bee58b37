// The store log of objects that are discovered at run time (RuntimeObject), such as the nodes of a
// tree. Only the run knows which objects these are, and how many.
//
// A store of an attribute appends the object and the value to the log of the attribute's name. A
// log is a list of the graph (symbolic_list.h), and grows in branches, loops and recursions as any
// other. A read searches it backwards for the last store to its object. The commit does the stores
// in their order.
//
// Whether a name has a log decides how the name is read, so it has to be known from the start. The
// first store under a name begins the generation anew (Generalise).
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "frontend/core/runtime_store_log_state.h"
#include "frontend/values/symbolic_list.h"
#include "frontend/values/value.h"
#include "speculate/generated.h"

namespace janus::frontend {

class ConsumedTape;
class AttachedStates;
class Interpreter;

class RuntimeStoreLog final : public RuntimeStoreLogState {
 public:
  RuntimeStoreLog(Interpreter& interpreter, const std::vector<std::string>& names);

  bool expects(const std::string& name) const override { return find(name) != nullptr; }
  void write(const std::shared_ptr<RuntimeObject>& object, const Classes& classes,
             const std::string& name, const Value& value) override;
  Value read(const RuntimeObject& object, const std::string& name, int fact,
             const std::function<Value()>& at_entry) override;
  graph::Value* has(const RuntimeObject& object, const std::string& name) override;
  void check_unwritten(PyTypeObject* type, const std::string& name) const override;
  bool is_log(const Sequence& list) const override;

  /// Refuses if a backward() in the run may not have reached all stored values with gradients.
  /// Where that depends on which of them were read, a guard of the run decides.
  void check_consumed();
  /// The lists of the logs; any code of the run may read them.
  std::vector<Value> lists() const;
  /// All that is written, as one value, and how the commit does it; nothing if there was no write.
  Value written() const;
  speculate::HeapWrite commit() const;
  /// Eager's names of autograd nodes, by the numbers that stand behind a written value.
  const std::vector<std::string>& grad_fn_names() const { return grad_fn_names_; }

 private:
  struct Log {
    std::string name;
    std::shared_ptr<Sequence> writes = std::make_shared<Sequence>(true);
    /// The positions in it of the values with gradients that were read, for each tensor of a value.
    std::array<std::shared_ptr<Sequence>, 4> reads = {
        std::make_shared<Sequence>(true), std::make_shared<Sequence>(true),
        std::make_shared<Sequence>(true), std::make_shared<Sequence>(true)};
    Classes classes;  ///< of the objects
  };
  const Log* find(const std::string& name) const;
  static bool is_empty(const Log& log);
  void check_class(const python::Object& type, const std::string& name) const;
  void add_names(const Value& value, std::vector<Value>& numbers);
  Value last_write(const RuntimeObject& object, const Log& log) const;
  std::shared_ptr<const Rolled> rolled_up(const Log& log, int fact) const;
  /// Where the object's last write stands in the list, from the end; 0: there is none.
  Value position_of(const RuntimeObject& object, const Rolled& writes) const;
  void note_read(const Log& log, const Rolled& writes, const Value& position);
  void guard_reads(const Log& log, ConsumedTape& sure, ConsumedTape& if_read);
  void guard_reads(const Log& log, size_t list, const Sequence& reads, ConsumedTape& sure,
                   ConsumedTape& if_read);
  std::shared_ptr<const Rolled> rolled_positions(const Sequence& reads) const;
  [[noreturn]] void refuse_unconsumed(const Log& log) const;

  Interpreter& interpreter_;
  std::vector<Log> logs_;
  std::shared_ptr<Sequence> order_ = std::make_shared<Sequence>(true);  ///< numbers of logs
  std::vector<std::string> grad_fn_names_;
};

/// The log of the interpretation.
RuntimeStoreLog& runtime_store_log_of(AttachedStates& attached);

}  // namespace janus::frontend
