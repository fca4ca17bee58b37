// torch.autocast as the interpreted program has switched it on.
#pragma once

#include <unordered_map>
#include <utility>

#include "frontend/values/value.h"

namespace janus::frontend {

struct Autocast {
  bool is_on = false;
  graph::DType dtype = graph::DType::bf16;
  bool keeps_casts = true;
  int nesting = 0;
  bool operator==(const Autocast&) const = default;
};

/// What pre-existing leaves were cast to, each with what it was cast from, until the outermost
/// context is left.
using Casts = std::unordered_map<const TensorState*, std::pair<Value, Value>>;

/// While it lives nothing is cast.
class WithoutAutocast {
 public:
  explicit WithoutAutocast(Autocast& autocast)
      : autocast_(autocast), before_(std::exchange(autocast.is_on, false)) {}
  ~WithoutAutocast() { autocast_.is_on = before_; }
  WithoutAutocast(const WithoutAutocast&) = delete;
  WithoutAutocast& operator=(const WithoutAutocast&) = delete;

 private:
  Autocast& autocast_;
  bool before_;
};

}  // namespace janus::frontend
