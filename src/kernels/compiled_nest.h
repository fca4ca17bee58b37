// Code of one loop nest, for each way in which its tensors have been walked so far, and the walk
// over what the code does not count itself. The code for a walk is made when it first comes up; a
// nest for which that happens often gets code that takes any stride.
#pragma once

#include <atomic>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "kernels/arguments.h"
#include "kernels/loop_nest.h"
#include "kernels/space.h"
#include "kernels/walk.h"

namespace janus::kernels {

/// What a run passes on to the code beside the space.
struct Call {
  void* const* starts;           ///< each tensor's first element, positions' included
  const NumberOperand* numbers;  ///< number inputs in order
  const int64_t* extents;        ///< sizes of the space before anything was joined
};

/// How code comes to be there; what is only to be found was made before, perhaps in another
/// process.
enum class Making { compiled, found };

class CompiledNest {
 public:
  explicit CompiledNest(LoopNest nest);
  ~CompiledNest();
  CompiledNest(const CompiledNest&) = delete;
  CompiledNest& operator=(const CompiledNest&) = delete;

  const LoopNest& nest() const { return nest_; }
  /// LLVM text of the code that was made last; of simple walks if there is none yet.
  std::string text() const;

  // The spaces are simplified.

  /// Makes the code for such a space, so that the first run need not wait. Whether it is there;
  /// where it is only to be found, it may not be.
  bool prepare(const Space& space, Making making) const;
  /// All of the space, on several threads if it is large.
  void run(const Space& space, const Call& call) const;
  /// The part of the space where `begin` <= index of dimension `dim` < `end`, on this thread.
  void run_slice(const Space& space, const Call& call, int dim, int64_t begin, int64_t end) const;

  using Code = void (*)(void* const* tensors, const int64_t* strides, const int64_t* sizes,
                        const NumberOperand* numbers, const int64_t* extents);

  /// All that a run needs to know of a space.
  struct Course {
    Code code = nullptr;
    std::vector<int64_t> sizes, strides;  ///< as the code takes them
    int64_t work = 0;
    int dim = -1;                 ///< along which it is shared out; -1: it is not
    int64_t unit = 1, units = 1;  ///< pieces of that dimension: indices of one, how many there are
  };
  /// For many runs over the space; nothing if the code does not count all dimensions itself, or
  /// hangs on where the tensors lie.
  std::optional<Course> course_over(const Space& space) const;
  void run(const Course& course, const Call& call) const;
  /// The pieces from `begin` to before `end`, on this thread.
  void run_pieces(const Course& course, const Call& call, int64_t begin, int64_t end) const;

 private:
  /// For which walks through the space code was made. Two bits for each tensor: its Walk.
  struct OrderKey {
    uint64_t walks = 0;
    int reduced_loops = 0;
    bool lanes_reduced = false;
    int registers = 1;
    bool keeps = false;
    uint32_t past_cache = 0;
    uint32_t ahead = 0;

    friend bool operator==(const OrderKey&, const OrderKey&) = default;
  };

  struct Version {
    OrderKey key;
    Code code = nullptr;
    const Version* next = nullptr;
  };

  static Order order_of(const OrderKey& key, size_t tensors);
  std::string text_for(const OrderKey& key) const;
  /// `starts`: each tensor's first element, null where that is not known yet.
  OrderKey order_key(const Space& space, void* const* starts) const;
  uint32_t fetched_ahead(const Space& space) const;
  uint32_t stored_past_cache(const Space& space, void* const* starts) const;
  bool takes_place_of_input(int output, void* const* starts) const;
  Code code_for(const OrderKey& key) const;
  const Version* find_version(const OrderKey& key) const;
  /// One that does the same, if perhaps less fast.
  const Version* find_similar_version(const OrderKey& key) const;
  /// Null if code that is only to be found was not made before.
  const Version* make_version(OrderKey key, Making making = Making::compiled) const;
  uint64_t all_tensors() const;

  void run_part(Code code, const Space& space, const Call& call) const;
  void run_slice(Code code, const Space& space, const Call& call, int dim, int64_t begin,
                 int64_t end) const;
  bool advance(const Space& space, int64_t* indices, char** places) const;

  LoopNest nest_;
  int64_t cost_;
  int64_t element_sizes_[kMaxTensors] = {};
  bool widens_ = false, widens_rows_ = false;
  uint32_t read_in_place_ = 0;  ///< bit t: tensor t is read at the point itself, unconditionally
  mutable std::mutex mutex_;    // guards growing of versions_
  mutable std::atomic<const Version*> versions_ = nullptr;
};

}  // namespace janus::kernels
