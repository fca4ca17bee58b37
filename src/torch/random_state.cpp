// Copies the generator's engine and its two cached normal samples; no tensor is made.
#include "torch/random_state.h"

#include <ATen/CPUGeneratorImpl.h>

#include <mutex>
#include <optional>

namespace janus::torch {

namespace {

at::CPUGeneratorImpl& generator() {
  return *at::detail::getDefaultCPUGenerator().get<at::CPUGeneratorImpl>();
}

class SavedGenerator final : public execute::RandomState {
 public:
  void save() override {
    const std::lock_guard lock(generator().mutex_);
    engine_ = generator().engine();
    float_sample_ = generator().next_float_normal_sample();
    double_sample_ = generator().next_double_normal_sample();
  }

  void restore() override {
    const std::lock_guard lock(generator().mutex_);
    generator().set_engine(engine_);
    generator().set_next_float_normal_sample(float_sample_);
    generator().set_next_double_normal_sample(double_sample_);
  }

 private:
  at::mt19937 engine_;
  std::optional<float> float_sample_;
  std::optional<double> double_sample_;
};

}  // namespace

std::unique_ptr<execute::RandomState> make_random_state() {
  return std::make_unique<SavedGenerator>();
}

}  // namespace janus::torch
