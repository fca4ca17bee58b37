// Copies the engine of torch's generator and its two cached normal samples; no tensor is made.
// Python's generators are asked for their state themselves.
#include "torch/random_state.h"

#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <vector>

#include "base/check.h"
#include "python/lock.h"

namespace janus::torch {

using python::Object;

namespace {

at::CPUGeneratorImpl& generator() {
  return *at::detail::getDefaultCPUGenerator().get<at::CPUGeneratorImpl>();
}

/// Of torch's default generator.
class TorchState {
 public:
  void save() {
    const std::lock_guard lock(generator().mutex_);
    engine_ = generator().engine();
    float_sample_ = generator().next_float_normal_sample();
    double_sample_ = generator().next_double_normal_sample();
  }

  void restore() const {
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

/// random.Random has getstate and setstate, RandomState get_state and set_state, Generator a bit
/// generator with an attribute.
class PythonState {
 public:
  explicit PythonState(PyObject* generator) : generator_(Object::borrow(generator)) {
    if (const Object get = python::try_attribute(generator, "getstate")) {
      state_ = python::call(get.get());
      setter_ = "setstate";
    } else if (python::try_attribute(generator, "get_state")) {
      state_ = python::call_method(generator, "get_state", {Py_False});
      setter_ = "set_state";
    } else {
      state_ = python::attribute(python::attribute(generator, "bit_generator").get(), "state");
    }
  }

  bool is_of(PyObject* generator) const { return generator_.is(generator); }
  PythonState now() const { return PythonState(generator_.get()); }

  void restore() const {
    if (setter_ != nullptr) {
      python::call_method(generator_.get(), setter_, {state_.get()});
    } else {
      const Object bits = python::attribute(generator_.get(), "bit_generator");
      python::set_attribute(bits.get(), "state", state_.get());
    }
  }

 private:
  Object generator_, state_;
  const char* setter_ = nullptr;
};

class SavedGenerators final : public execute::RandomState {
 public:
  SavedGenerators() = default;
  SavedGenerators(const SavedGenerators& other) : RandomState(other), torch_(other.torch_) {
    if (other.python_.empty()) return;
    const python::WithLock gil;
    python_ = other.python_;
  }
  SavedGenerators& operator=(const SavedGenerators&) = delete;
  ~SavedGenerators() override {
    if (active == this) active = nullptr;
    forget_python();
  }

  void save() override {
    forget_python();
    active = this;
    torch_.save();
  }

  void restore() override {
    torch_.restore();
    if (python_.empty()) return;
    const python::WithLock gil;
    const python::ErrorScope errors;
    for (const PythonState& state : python_) state.restore();
  }

  std::unique_ptr<RandomState> copy() const override {
    return std::make_unique<SavedGenerators>(*this);
  }

  /// The same generators as they are now.
  std::unique_ptr<RandomState> now() const {
    auto saved = std::make_unique<SavedGenerators>();
    saved->torch_.save();
    if (python_.empty()) return saved;
    const python::WithLock gil;
    for (const PythonState& state : python_) saved->python_.push_back(state.now());
    return saved;
  }

  void save_python(PyObject* generator) {
    const auto known = std::any_of(python_.begin(), python_.end(), [&](const PythonState& state) {
      return state.is_of(generator);
    });
    if (!known) python_.emplace_back(generator);
  }

  /// Of the run that began last on this thread.
  static thread_local SavedGenerators* active;

 private:
  void forget_python() {
    if (python_.empty() || Py_IsInitialized() == 0) return;
    const python::WithLock gil;
    python_.clear();
  }

  TorchState torch_;
  std::vector<PythonState> python_;
};

thread_local SavedGenerators* SavedGenerators::active = nullptr;

}  // namespace

std::unique_ptr<execute::RandomState> make_random_state() {
  return std::make_unique<SavedGenerators>();
}

struct KeptGenerator::State : TorchState {};

KeptGenerator::KeptGenerator() : state_(std::make_unique<State>()) { state_->save(); }

KeptGenerator::~KeptGenerator() { state_->restore(); }

EarlierGenerators::EarlierGenerators(execute::RandomState& earlier)
    : now_(static_cast<SavedGenerators&>(earlier).now()) {
  earlier.restore();
}

EarlierGenerators::~EarlierGenerators() { now_->restore(); }

void save_python_generator(PyObject* generator) {
  TORCHJANUS_CHECK(SavedGenerators::active != nullptr, "random state: no run draws");
  SavedGenerators::active->save_python(generator);
}

}  // namespace janus::torch
