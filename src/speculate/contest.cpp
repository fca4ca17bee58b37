#include "speculate/contest.h"

#include "base/options.h"
#include "python/object.h"
#include "speculate/entry.h"
#include "speculate/tensor_access.h"

namespace janus::speculate {

namespace {

constexpr int kQuietRuns = 16;
/// One contest at a time, as those within each other would disturb one another. One that does not
/// come again while others ask so often has had its time.
constexpr int kMostPatience = 200;
Contest* current = nullptr;
int asked = 0;

}  // namespace

bool Contest::are_held = true;

bool Contest::begins(uint64_t news) {
  if (!are_held || trial_.is_over() || options().strict) return false;
  if (news != news_) {
    news_ = news;
    quiet_ = 0;
    trial_ = {};
    leave();
    return false;
  }
  if (quiet_ < kQuietRuns) {
    ++quiet_;
    return false;
  }
  if (!enter()) return false;
  const double time = now();
  const Place place = here();
  if (started_ != 0 && place == place_) trial_.add(time - started_);
  place_ = place;
  started_ = time;
  if (trial_.is_over()) {
    leave();
    if (has_tensor_access()) tensor_access().give_back_free_memory();  // the other way's
  }
  return trial_.next_is_old();
}

Contest::Place Contest::here() {
  Place place{PyThread_get_thread_ident(), 0};
  for (auto frame = python::Object::borrow(reinterpret_cast<PyObject*>(PyEval_GetFrame())); frame;
       ++place.depth)
    frame = python::Object::steal(reinterpret_cast<PyObject*>(
        PyFrame_GetBack(reinterpret_cast<PyFrameObject*>(frame.get()))));
  return place;
}

bool Contest::enter() {
  if (current != this && current != nullptr && ++asked <= kMostPatience) {
    started_ = 0;
    return false;
  }
  if (current != this && current != nullptr) current->leave();
  current = this;
  asked = 0;
  return true;
}

void Contest::leave() {
  started_ = 0;
  if (current == this) current = nullptr;
}

}  // namespace janus::speculate
