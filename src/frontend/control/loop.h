// One loop on its way into the graph (the inside of loops.h). Test and body are interpreted with a
// parameter for each value that is known to be loop-carried. What else they change is carried in
// the next attempt, until the loop-carried state reaches a fixpoint.
//
//   loop.cpp          the attempts
//   loop_begin.cpp    the state that an iteration begins with, and that behind the loop
//   loop_changes.cpp  what an iteration has changed, object by object
//   loop_join.cpp     whether what a place holds can go from iteration to iteration, and how
//   loop_node.cpp     the node, and what is known behind it
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "frontend/control/loop_parts.h"
#include "frontend/control/number_parts.h"
#include "frontend/values/number_kinds.h"
#include "frontend/values/restart.h"
#include "frontend/values/symbolic_list.h"

namespace janus::frontend {

/// How a value that a variable or container holds goes through the loop.
struct Passage {
  enum class Kind {
    same,     ///< loop-invariant
    carried,  ///< a number or tensor: a parameter of the blocks
    parts,   ///< a tuple, or a container or object that iterations replace by another, part by part
    either,  ///< a number of one of two kinds: three parameters
    last,    ///< set by each iteration before it is read: what the last one left
    unmerged,  ///< set by the iterations to what has nothing in common with what it was: not
               ///< readable
  };
  Kind kind = Kind::same;
  std::vector<Passage> parts;
  NumberKinds kinds{};             ///< either
  bool tracked = false;            ///< carried: a tensor that requires a gradient
  Classes classes;                 ///< carried: of an object that only the run meets
  std::string why_not;             ///< unmerged
  Value last;                      ///< last: as the iteration at hand left it
  std::vector<graph::Type> types;  ///< last: of the numbers and tensors in it
};

/// How a list goes through the loop that iterations append to.
struct Growth {
  ElementForm form;
  bool front = false;      ///< by elements in front of the others
  bool undecided = false;  ///< it can't be told yet
  std::shared_ptr<Tensor> memory = std::make_shared<Tensor>();
  /// Of the list that the iteration at hand left: of another one, where a branch or loop in it made
  /// that, or a part of a list.
  std::shared_ptr<Tensor> left;
};

/// A list, dict or object that stands for the one that a place held before the loop, as it was made
/// for the begin of an iteration, or for what is behind the loop.
struct Replacement {
  Value value;
  std::vector<Value> parts;
};

/// The parameter that stands for a carried value, given what it is before the loop.
using Parameter = std::function<graph::Value*(graph::Value* initial)>;

/// A tensor that stands for what a variable held before, holds in an iteration, or holds
/// afterwards.
struct CarriedTensor {
  std::shared_ptr<Tensor> tensor;
  std::vector<std::shared_ptr<Tensor>> roots;
};

/// What a tuple consists of, or a list, dict or object that the run made; nothing for all else.
std::optional<std::vector<Value>> parts_of(const Value& value);
/// Another one like it, of other parts.
Value made_of_parts(const Value& like, const std::vector<Value>& parts);

/// Interprets one iteration. `continue`, `break`, `return` (which the frame has noted) and the end
/// of the body all end it.
void interpret_iteration(Frames& frames, const LoopParts& parts);
/// Whether the profile saw a first iteration in all runs; of a rest of a loop, a second one.
bool begins_in_all_runs(Interpreter& interpreter, const TestKey& test, const LoopParts& parts);
/// Whether a first iteration comes: it is known, or a guard assumes it.
bool surely_begins(Guards& guards, const TestKey& test, const LoopParts& parts);

/// Interprets one loop and makes its node. Throws CannotMerge if what its iterations change can't
/// be carried: nothing has to be undone, as the generation then begins anew with that loop
/// followed.
class Loop final : public Scope {
 public:
  Loop(Interpreter& interpreter, TestKey test, const LoopParts& parts)
      : interpreter_(interpreter),
        test_(std::move(test)),
        parts_(parts),
        outer_(interpreter.builder().block()),
        span_(interpreter.user_span()),
        before_(SavedState::of(interpreter)),
        differentiable_results_(interpreter.output().differentiable_results.size()),
        results_(interpreter.results().size()),
        heap_(before_.state.heap) {}

  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;
  ~Loop() override;

  void run();
  bool is_inside(const graph::Block* block) const override { return block == at_; }
  void add_entry_object(Changeable& object) override { before_.objects.add(object); }
  bool keeps(const Tensor& tensor) const override;
  const TestKey* test() const override { return &test_; }

 private:
  /// Its iterations need a result that is not known yet: goes on as if there was none.
  void leave_out();
  [[noreturn]] void fail(std::string why) const { throw CannotMerge{test_, std::move(why)}; }
  /// As fail(), where what the first iteration finds is of another kind than what it leaves.
  [[noreturn]] void fail_first_iteration(std::string why) const {
    throw CannotMerge{test_, std::move(why), /*in_first_iteration=*/true};
  }
  void enter(graph::Block& block);

  // --- an attempt

  /// Interprets test and body with what is known to be carried; false if there is more.
  bool attempt_iteration();
  void put_away_blocks();
  Parameter parameters_of(graph::Block& block);
  void interpret_test();
  void interpret_iteration();

  // --- the state at the begin of an iteration

  /// Sets the state before the loop, with a parameter for all that is carried.
  void set_state(const Parameter& parameter);
  void set_objects(const Parameter& parameter);
  /// Begins a list that iterations append to. It has the elements from before the loop, and those
  /// that follow.
  void begin_list(Sequence& sequence, const Parameter& parameter);
  /// Contents that are written in place: the same object with other contents.
  void begin_contents(Tensor& tensor, const Parameter& parameter);
  /// What stands for a value that was `initial` before the loop; `name`: of its place, for reports.
  Value instantiate(const Passage& passage, const Value& initial, const Parameter& parameter,
                    const std::string& name);
  Value instantiate_parts(const Passage& passage, const Value& initial, const Parameter& parameter,
                          const std::string& name);
  /// A variable of which nothing was known before the loop. The iterations can't read it.
  Value instantiate_last(const Passage& passage, const Value& initial, const std::string& name,
                         const Parameter& parameter);
  /// What the last iteration left in such a variable, as the one at hand left `like`.
  Value last_value(const Value& like, const Passage& passage, size_t& next,
                   const Parameter& parameter);

  // --- in front of the loop

  /// What `make` gives, made in the block around the loop.
  template <typename Make>
  auto in_front(const Make& make) {
    graph::Block* inside = &interpreter_.builder().block();
    interpreter_.enter_block(outer_);
    auto made = make();
    interpreter_.enter_block(*inside);
    return made;
  }
  /// What stands for a value before the first iteration, which certainly sets it.
  graph::Value* placeholder(const graph::Type& type);
  graph::Value* initial_number(const Value& number);
  std::optional<NumberParts> initial_parts(const Value& number, const NumberKinds& kinds);
  graph::Value* initial_object(const Value& object);

  // --- what an iteration has changed

  /// Notes what has to be carried and what each of it holds at the end of the iteration; false if
  /// some of it is new.
  bool collect_changes();
  void collect_state();
  void collect_objects();
  void collect_heap();
  void collect_table(const Heap::Table& now);
  std::optional<size_t> place_of(PyObject* identity, const Heap::Change& wanted);
  /// A place that the iterations write: from now on as if what it holds at the entry was written
  /// there before the loop.
  void add_place(const Heap::Table& now, const Heap::Change& change);
  void collect_real_list(PyObject* object, const Heap::List& now);
  /// Whether the list is one that goes through the loop as a list of the graph.
  bool collect_list(Sequence& sequence, const Elements& initial);
  void begin_growth(Sequence& sequence, const Elements& initial);
  void collect_contents(Tensor& tensor, const TensorState& initial);
  void collect_variables(Variables& variables, const VariableValues& initial);
  /// The name of an element's place, in an order that is that of the positions.
  static std::string key_of(size_t index);
  const Passage& passage_at(const Changeable& object, const std::string& key);
  /// One place of an object; only variables may come to hold what nobody can read.
  void join_slot(Changeable& object, const std::string& key, const Value& initial, const Value& end,
                 bool may_be_unmerged);

  /// Extends how the place goes through the loop to what it holds at the end of an iteration; false
  /// if nothing fits.
  bool join(Passage& passage, const Value& initial, const Value& end, std::string& why);
  bool join_parts(Passage& passage, const Value& initial, const Value& end, std::string& why);
  /// What a place still holds at the end of an iteration.
  void note_kept(const Value& value);
  /// Checks that a container that iterations replace is held by nobody else and does not change.
  /// Each iteration begins with a container of its own.
  void check_replacements();
  /// Whether the place holds a number of one of two kinds from now on.
  bool becomes_either(const Passage& passage, const Value& initial, const Value& end);
  bool join_either(const Passage& passage, const Value& initial, const Value& end,
                   std::string& why);
  bool join_last(Passage& passage, const Value& initial, const Value& end, std::string& why);
  bool collect_last(Passage& passage, const Value& end);
  /// Whether it has a size that differs from iteration to iteration.
  bool is_sized_inside(const graph::Type& type) const;
  void add_end(const std::shared_ptr<Tensor>& tensor);
  bool join_carried(Passage& passage, const Value& initial, const Value& end, std::string& why);
  /// An object that only the run meets, in the first iteration or in later ones.
  bool join_object(Passage& passage, const Value& initial, const Value& end, std::string& why);
  /// Eager's tensors require gradients from the first iteration on, or never.
  bool join_tracked(Passage& passage, const Tensor& first, const Tensor& last, std::string& why);
  static bool is_same_number(const Value& a, const Value& b);

  // --- the node

  void make_node();
  /// What is known of the lists that grew.
  void finish_lists(const graph::Node& node);
  /// A list that holds a tensor shows what later iterations write to that.
  void check_not_written(const Growth& growth) const;
  /// The length of a list to which each iteration appends equally many elements; null: it varies.
  Value length_behind(const Sequence& sequence, const graph::Block& body, size_t index);
  /// Whether the first iteration always comes: known, or seen in all runs and guarded.
  bool begins_certainly();
  /// Whether a tensor that goes through the loop is one of the entry without an iteration.
  bool hands_on_argument() const;
  bool may_begin_certainly() const;
  /// What an iteration hands on may be what an earlier one has handed to it.
  void follow_parameters();
  /// Which tensors may be one after the loop: as they were before it, or as the last iteration left
  /// them.
  void relate_tensors();
  void detach(Tensor& tensor);
  static bool share_roots(const CarriedTensor& a, const CarriedTensor& b);

  /// What one place holds at the end of an iteration.
  struct Pending {
    std::vector<graph::Value*> ends;
    std::vector<std::vector<std::shared_ptr<Tensor>>> roots;
  };

  Interpreter& interpreter_;
  TestKey test_;
  const LoopParts& parts_;
  graph::Block& outer_;
  graph::SourceSpan span_;
  SavedState before_;
  size_t differentiable_results_, results_;  // how many there were before
  Heap& heap_;  ///< before the loop; with what the iterations change as it is then
  /// By table, and which of its changes.
  std::map<std::pair<PyObject*, size_t>, Passage> heap_passages_;
  const graph::Block* at_ = nullptr;
  std::unique_ptr<graph::Block> condition_, body_;
  /// By object that iterations change, and by variable name or position. A tensor's contents have
  /// no name.
  std::map<const Changeable*, std::map<std::string, Passage>> passages_;
  std::map<Sequence*, Growth> growth_;
  std::vector<CarriedTensor> tensors_;
  std::vector<graph::Value*> ends_;
  std::vector<std::vector<std::shared_ptr<Tensor>>> end_roots_;
  Pending pending_;
  std::map<std::pair<PyObject*, size_t>, Pending> heap_pending_;
  /// Containers and objects that iterations replace: what stands for them, which take their place,
  /// and which places still hold.
  std::map<const AbstractValue*, Replacement> replacements_;
  std::set<std::pair<const AbstractValue*, const AbstractValue*>> replaced_;
  std::set<const AbstractValue*> kept_;
  std::set<const AbstractValue*> held_;  ///< of those that iterations replace: they can't be parts
  bool holds_unseen_ = false;            ///< by a method or an iterator
  bool at_fixpoint_ = false;
  std::string changing_;  ///< for reports: what did not reach a fixpoint in the last attempt
  bool begins_ = false;   ///< the first iteration always comes
  int attempt_ = 0;
  bool tracks_ = false;           ///< a gradient flows from iteration to iteration
  bool needs_iteration_ = false;  ///< without an iteration something would require no gradient
  bool moves_ = false;            ///< without an iteration a tensor would lie otherwise in memory
  std::set<const Tensor*> tracked_contents_;  ///< written with what requires a gradient
};

}  // namespace janus::frontend
