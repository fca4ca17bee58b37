// torch._fused_*: the whole update of an optimizer with fused=True, as operators of the graph. On a
// CPU torch computes it with the formulas of its loops over single tensors, element by element.
// Only square roots differ: these kernels take the processor's. The last elements, which fill no
// vector, torch computes by other code, whose rounding depends on the compiler: there the last bit
// may differ.
#include "frontend/core/communication.h"
#include "frontend/core/interpreter.h"
#include "frontend/core/known_callables.h"
#include "frontend/core/operations.h"
#include "frontend/core/torch_objects.h"
#include "frontend/torch_library/special_callables.h"
#include "frontend/values/strides.h"

namespace janus::frontend {

namespace {

using syntax::Operator;

/// The arguments of one call of such a kernel, and the arithmetic that its formula needs.
class Update {
 public:
  Update(Interpreter& interpreter, const CallArguments& arguments)
      : interpreter_(interpreter), arguments_(arguments) {}

  /// Whether this is a call of `lists` lists of tensors in single or double precision, all of whose
  /// elements lie alike. A rate that is a tensor, and gradients that are scaled first, are left to
  /// torch, and so are updates that other processes make as well.
  bool is_usual(size_t lists) {
    if (is_in_process_group(interpreter_)) return false;
    if (arguments_.positional.size() != lists) return false;
    for (const char* name : {"grad_scale", "found_inf"}) {
      const Value* given = arguments_.keyword(name);
      if (given != nullptr && !is_none(*given)) return false;
    }
    const Value* rate = arguments_.keyword("lr");
    if (rate == nullptr || as<Tensor>(*rate) != nullptr) return false;
    for (const Value& list : arguments_.positional)
      lists_.push_back(elements_of(interpreter_, list));
    for (const std::vector<Value>& list : lists_) {
      if (!list.empty() && list.size() != count()) return false;
      for (size_t i = 0; i < list.size(); ++i)
        if (!lies_as(list[i], lists_[0][i])) return false;
    }
    for (const std::vector<Value>& list : lists_)
      for (const Value& each : list) versions_.push_back(as<Tensor>(each)->version);
    return true;
  }

  /// Eager's kernels count none of their writes.
  void hide_writes() {
    auto before = versions_.begin();
    for (const std::vector<Value>& list : lists_)
      for (const Value& each : list) {
        auto& tensor = *as<Tensor>(each);
        tensor.silent_writes += tensor.version - *before++;
      }
  }

  size_t count() const { return lists_[0].size(); }
  const Value& tensor(size_t list, size_t index) const { return lists_[list].at(index); }

  Value option(const char* name) const {
    const Value* given = arguments_.keyword(name);
    return given == nullptr ? interpreter_.boolean(false) : *given;
  }
  bool is_set(const char* name) { return truth(interpreter_, option(name), -1); }
  bool is_zero(const char* name) {
    return holds(interpreter_, option(name), syntax::CompareOperator::Eq, number(0));
  }

  Value number(double value) {
    return interpreter_.constant(python::check(PyFloat_FromDouble(value)));
  }
  Value operate(Operator op, const Value& left, const Value& right) {
    return binary(interpreter_, op, left, right);
  }
  Value one_minus(const Value& value) { return operate(Operator::Sub, number(1), value); }
  Value negative(const Value& value) { return operate(Operator::Mult, value, number(-1)); }

  Value call_torch(const char* path, std::vector<Value> operands, const char* name = nullptr,
                   const Value& option = nullptr) {
    CallArguments arguments;
    arguments.positional = std::move(operands);
    if (name != nullptr) arguments.keywords.emplace_back(name, option);
    return call(interpreter_, interpreter_.constant_borrowed(imported(path)), arguments);
  }
  void scale(const Value& tensor, const Value& factor) {
    call_torch("torch.Tensor.mul_", {tensor, factor});
  }
  /// tensor += factor * other
  void add(const Value& tensor, const Value& other, const Value& factor) {
    call_torch("torch.Tensor.add_", {tensor, other}, "alpha", factor);
  }
  Value sum(const Value& tensor, const Value& other, const Value& factor) {
    return call_torch("torch.add", {tensor, other}, "alpha", factor);
  }
  /// The processor's square root. Eager's `sqrt` is a library's on some processors, and a power of
  /// one half is not.
  Value root(const Value& tensor) { return call_torch("torch.pow", {tensor, number(0.5)}); }

  /// The gradient to descend along, with what decays added to it.
  Value gradient(size_t index, bool decays) {
    Value given = tensor(1, index);
    if (is_set("maximize")) given = call_torch("torch.neg", {given});
    if (!decays || is_zero("weight_decay")) return given;
    return sum(given, tensor(0, index), option("weight_decay"));
  }
  /// tensor += factor * numerator / denominator
  void step(const Value& tensor, const Value& numerator, const Value& denominator,
            const Value& factor) {
    call_torch("torch.Tensor.addcdiv_", {tensor, numerator, denominator}, "value", factor);
  }

 private:
  /// Whether the kernel, which goes through memory in order, meets the same elements of both.
  static bool lies_as(const Value& value, const Value& parameter) {
    const auto *tensor = as<Tensor>(value), *first = as<Tensor>(parameter);
    if (tensor == nullptr || first == nullptr) return false;
    if (graph::is_half(tensor->value->type.dtype)) return false;
    if (tensor->value->type.rank() == 0 || (is_contiguous(*tensor) && is_contiguous(*first)))
      return true;
    const auto order = order_in_memory(*tensor);
    return order && order == order_in_memory(*first);
  }

  Interpreter& interpreter_;
  const CallArguments& arguments_;
  std::vector<std::vector<Value>> lists_;
  std::vector<uint32_t> versions_;  ///< of all of them, before the update
};

enum class Decay { in_gradient, apart };

/// torch._fused_adam_(params, grads, averages, averages of squares, their maxima, steps)
template <Decay decay>
Value call_adam(Interpreter& interpreter, const CallArguments& arguments) {
  Update update(interpreter, arguments);
  if (!update.is_usual(6)) return nullptr;
  const Value rate = update.option("lr"), beta1 = update.option("beta1"),
              beta2 = update.option("beta2");
  for (size_t i = 0; i < update.count(); ++i) {
    const Value &parameter = update.tensor(0, i), &average = update.tensor(2, i),
                &squares = update.tensor(3, i);
    const Value step = update.call_torch("torch.Tensor.item", {update.tensor(5, i)});
    const auto correction = [&](const Value& beta) {
      return update.one_minus(update.operate(Operator::Pow, beta, step));
    };
    const Value rest = update.call_torch("math.sqrt", {correction(beta2)});
    const Value length = update.operate(Operator::Div, rate, correction(beta1));
    const Value gradient = update.gradient(i, decay == Decay::in_gradient);
    if (decay == Decay::apart && !update.is_zero("weight_decay"))
      update.scale(parameter, update.one_minus(update.operate(Operator::Mult, rate,
                                                              update.option("weight_decay"))));
    update.call_torch("torch.Tensor.lerp_", {average, gradient, update.one_minus(beta1)});
    update.scale(squares, beta2);
    update.call_torch("torch.Tensor.addcmul_", {squares, gradient, gradient}, "value",
                      update.one_minus(beta2));
    Value largest = squares;
    if (update.is_set("amsgrad")) {
      largest = update.tensor(4, i);
      update.call_torch("torch.Tensor.copy_",
                        {largest, update.call_torch("torch.maximum", {largest, squares})});
    }
    const Value scaled = update.call_torch("torch.div", {update.root(largest), rest});
    const Value denominator = update.call_torch("torch.add", {scaled, update.option("eps")});
    update.step(parameter, average, denominator, update.negative(length));
  }
  update.hide_writes();
  return interpreter.none();
}

/// torch._fused_sgd_(params, grads, buffers of momentum)
Value call_sgd(Interpreter& interpreter, const CallArguments& arguments) {
  Update update(interpreter, arguments);
  if (!update.is_usual(3)) return nullptr;
  const bool has_momentum = !update.is_zero("momentum");
  const Value momentum = update.option("momentum");
  for (size_t i = 0; i < update.count(); ++i) {
    Value gradient = update.gradient(i, true);
    if (has_momentum) {
      const Value& buffer = update.tensor(2, i);
      if (update.is_set("is_first_step")) {
        update.call_torch("torch.Tensor.copy_", {buffer, gradient});
      } else {
        update.scale(buffer, momentum);
        update.add(buffer, gradient, update.one_minus(update.option("dampening")));
      }
      gradient = update.is_set("nesterov") ? update.sum(gradient, buffer, momentum) : buffer;
    }
    update.add(update.tensor(0, i), gradient, update.negative(update.option("lr")));
  }
  update.hide_writes();
  return interpreter.none();
}

/// torch._fused_adagrad_(params, grads, sums of squares, steps)
Value call_adagrad(Interpreter& interpreter, const CallArguments& arguments) {
  Update update(interpreter, arguments);
  if (!update.is_usual(4)) return nullptr;
  for (size_t i = 0; i < update.count(); ++i) {
    const Value& squares = update.tensor(2, i);
    const Value step = update.call_torch("torch.Tensor.item", {update.tensor(3, i)});
    const Value past = update.operate(Operator::Sub, step, update.number(1));
    const Value slower =
        update.operate(Operator::Add, update.number(1),
                       update.operate(Operator::Mult, past, update.option("lr_decay")));
    const Value rate = update.operate(Operator::Div, update.option("lr"), slower);
    const Value gradient = update.gradient(i, true);
    update.call_torch("torch.Tensor.addcmul_", {squares, gradient, gradient}, "value",
                      update.number(1));
    const Value denominator =
        update.call_torch("torch.add", {update.root(squares), update.option("eps")});
    update.step(update.tensor(0, i), gradient, denominator, update.negative(rate));
  }
  update.hide_writes();
  return interpreter.none();
}

}  // namespace

std::span<const SpecialCallable> fused_callables() {
  static constexpr SpecialCallable table[] = {
      {"torch._fused_adagrad_", call_adagrad},
      {"torch._fused_adam_", call_adam<Decay::in_gradient>},
      {"torch._fused_adamw_", call_adam<Decay::apart>},
      {"torch._fused_sgd_", call_sgd},
  };
  return table;
}

}  // namespace janus::frontend
