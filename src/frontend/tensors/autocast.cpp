#include "frontend/tensors/autocast.h"

#include <algorithm>
#include <functional>

#include "frontend/core/autocast_state.h"
#include "frontend/core/grad_mode.h"
#include "frontend/core/interpreter.h"
#include "frontend/core/known_callables.h"
#include "frontend/core/operations.h"
#include "frontend/core/torch_objects.h"
#include "frontend/tensors/overloads.h"
#include "frontend/tensors/special_callables.h"
#include "frontend/tensors/tensor.h"
#include "frontend/values/make.h"
#include "graph/op.h"
#include "ops/list.h"
#include "speculate/describe.h"

namespace janus::frontend {

using graph::DType;
/// What torch's lists say of an operator.
using Policy = graph::Autocast;
using speculate::ReasonCode;

namespace {

// Operators of ATen that have no block (those that have one say it there: OpDef::autocast).

constexpr std::string_view kLower[] = {
    "_addmm_activation", "_convolution",     "_native_multi_head_attention", "addbmm", "conv_tbc",
    "linalg_vecdot",     "mkldnn_rnn_layer", "scaled_dot_product_attention",
};
constexpr std::string_view kWidest[] = {"index_copy"};
constexpr std::string_view kFull[] = {
    "_grid_sampler_2d_cpu_fallback",
    "_lu_with_info",
    "adaptive_avg_pool3d",
    "adaptive_max_pool3d",
    "avg_pool3d",
    "cdist",
    "cholesky",
    "cholesky_inverse",
    "cholesky_solve",
    "cosine_embedding_loss",
    "ctc_loss",
    "fake_quantize_per_tensor_affine",
    "fft_fft",
    "fft_fft2",
    "fft_fftn",
    "fft_hfft",
    "fft_ifft",
    "fft_ifft2",
    "fft_ifftn",
    "fft_ihfft",
    "fft_irfft",
    "fft_irfft2",
    "fft_irfftn",
    "fft_rfft",
    "fft_rfft2",
    "fft_rfftn",
    "fractional_max_pool2d",
    "fractional_max_pool3d",
    "geqrf",
    "grid_sampler",
    "grid_sampler_2d",
    "grid_sampler_3d",
    "hinge_embedding_loss",
    "inverse",
    "linalg_cholesky",
    "linalg_cholesky_ex",
    "linalg_cond",
    "linalg_eig",
    "linalg_eigh",
    "linalg_eigvals",
    "linalg_eigvalsh",
    "linalg_householder_product",
    "linalg_inv",
    "linalg_inv_ex",
    "linalg_lstsq",
    "linalg_matrix_rank",
    "linalg_matrix_sqrth",  // since torch 2.15
    "linalg_qr",
    "linalg_solve",
    "linalg_svd",
    "linalg_svdvals",
    "linalg_tensorinv",
    "linalg_tensorsolve",
    "lu_solve",
    "margin_ranking_loss",
    "max_unpool2d",
    "max_unpool3d",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_margin_loss_forward",
    "nanquantile",
    "nll_loss2d",
    "orgqr",
    "ormqr",
    "pinverse",
    "poisson_nll_loss",
    "polar",
    "qr",
    "quantile",
    "reflection_pad1d",
    "reflection_pad2d",
    "replication_pad1d",
    "replication_pad2d",
    "replication_pad3d",
    "soft_margin_loss",
    "stft",
    "svd",
    "trace",
    "triangular_solve",
    "triplet_margin_loss",
    "view_as_complex",
};

/// Compositions of ATen's in which there is nothing to be cast.
constexpr std::string_view kWithoutListed[] = {
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "alpha_dropout",
    "argsort",
    "batch_norm",
    "broadcast_to",
    "chunk",
    "cosine_similarity",
    "dropout",
    "feature_dropout",
    "flatten",
    "group_norm",
    "instance_norm",
    "layer_norm",
    "log_softmax",
    "max_pool1d",
    "max_pool2d",
    "movedim",
    "pairwise_distance",
    "repeat_interleave",
    "rms_norm",
    "softmax",
    "std",
    "take_along_dim",
    "tile",
    "var",
    "where",
};

bool contains(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

/// Of an operator of ATen that the graph has none for, by its name without an overload.
Policy policy_of(std::string_view name) {
  if (contains(kLower, name)) return Policy::lower;
  if (contains(kWidest, name)) return Policy::widest;
  return contains(kFull, name) ? Policy::full : Policy::none;
}

bool is_listed(Policy policy) {
  return policy == Policy::lower || policy == Policy::widest || policy == Policy::full;
}

bool is_cast(const Tensor& tensor) {
  const DType dtype = tensor.value->type.dtype;
  return graph::is_floating(dtype) && dtype != DType::f64;
}

class Caster {
 public:
  Caster(Interpreter& interpreter, DType to) : interpreter_(interpreter), to_(to) {}

  Value cast(const Value& value) {
    if (auto tensor = shared_as<Tensor>(value)) return cast_tensor(tensor);
    Value shadow = opened(interpreter_, value);
    const auto* sequence = as<Sequence>(shadow);
    if (sequence == nullptr) return value;
    std::vector<Value> elements;
    bool is_same = true;
    for (const Value& element : sequence->elements) {
      elements.push_back(cast(element));
      is_same = is_same && elements.back() == element;
    }
    return is_same ? value : make_tuple(std::move(elements));
  }

 private:
  Value cast_tensor(const std::shared_ptr<Tensor>& tensor) {
    read(interpreter_, *tensor);
    if (!is_cast(*tensor) || tensor->value->type.dtype == to_) return tensor;
    const bool is_kept = is_kept_once_cast(*tensor);
    if (is_kept)
      if (const auto known = interpreter_.casts.find(tensor.get());
          known != interpreter_.casts.end())
        return known->second.second;
    if (is_kept && interpreter_.modes.grad_enabled && may_be_cast_elsewhere())
      interpreter_.refuse(ReasonCode::mode_active,
                          "an autocast that keeps a weight's cast for others");
    // What is kept has its gradient, also where it is first wanted without.
    const GradMode mode(interpreter_, interpreter_.modes.grad_enabled || is_kept);
    Value result = cast_to(interpreter_, tensor, to_);
    if (is_kept && !may_be_cast_elsewhere()) interpreter_.casts[tensor.get()] = {tensor, result};
    return result;
  }

  /// Eager keeps what it casts leaves to, so that the gradients of all uses are added up before
  /// they are cast back.
  bool is_kept_once_cast(const Tensor& tensor) const {
    return interpreter_.modes.autocast.keeps_casts && to_ == interpreter_.modes.autocast.dtype &&
           tensor.value->type.dtype == DType::f32 && tensor.requires_grad && tensor.is_leaf &&
           tensor.base == nullptr;
  }

  /// By what ran before the call in the same context, or in another iteration, side or activation.
  bool may_be_cast_elsewhere() const {
    return interpreter_.output().environment.autocast ||
           &interpreter_.builder().block() != &interpreter_.output().graph.body();
  }

  Interpreter& interpreter_;
  DType to_;
};

/// All tensors among the arguments.
void visit(Interpreter& interpreter, const Value& value,
           const std::function<void(const Tensor&)>& see) {
  if (const auto* tensor = as<Tensor>(value)) return see(*tensor);
  Value shadow = opened(interpreter, value);
  if (const auto* sequence = as<Sequence>(shadow))
    for (const Value& element : sequence->elements) visit(interpreter, element, see);
}

DType widest(Interpreter& interpreter, const CallArguments& arguments) {
  DType found = interpreter.modes.autocast.dtype;
  const auto see = [&](const Tensor& tensor) {
    if (!is_cast(tensor)) return;
    const DType dtype = tensor.value->type.dtype;
    if (dtype != DType::f32 && dtype != interpreter.modes.autocast.dtype)
      interpreter.refuse(ReasonCode::would_raise, "RuntimeError: a type that autocast has not");
    if (dtype == DType::f32) found = DType::f32;
  };
  for (const Value& value : arguments.positional) visit(interpreter, value, see);
  for (const auto& [name, value] : arguments.keywords) visit(interpreter, value, see);
  return found;
}

// --- the state -----------------------------------------------------------------------------------

/// Refuses devices other than the CPU.
void require_cpu(const Frames& frames, const CallArguments& arguments) {
  const Value* device = arguments.positional.empty() ? nullptr : &arguments.positional[0];
  PyObject* object = device == nullptr ? nullptr : known_object(*device);
  if (object == nullptr || PyUnicode_Check(object) == 0 || speculate::text_of(object) != "cpu")
    frames.refuse(ReasonCode::mode_active, "autocast of another device");
}

bool flag_of(Interpreter& interpreter, const CallArguments& arguments, size_t index) {
  if (index >= arguments.positional.size())
    interpreter.refuse(ReasonCode::unsupported_argument, "a missing flag");
  return truth(interpreter, arguments.positional[index], -1);
}

Value call_available(Interpreter& interpreter, const CallArguments& arguments) {
  require_cpu(interpreter, arguments);
  return interpreter.boolean(true);
}

Value call_private_backend(Interpreter& interpreter, const CallArguments&) {
  return interpreter.constant(python::string("privateuseone"));
}

Value call_is_enabled(Interpreter& interpreter, const CallArguments& arguments) {
  if (arguments.positional.empty()) return interpreter.boolean(false);  // of CUDA
  require_cpu(interpreter, arguments);
  return interpreter.boolean(interpreter.modes.autocast.is_on);
}

Value call_set_enabled(Interpreter& interpreter, const CallArguments& arguments) {
  require_cpu(interpreter, arguments);
  if (interpreter.recursion().is_building())
    interpreter.refuse(ReasonCode::mode_active, "autocast in a recursion");
  interpreter.modes.autocast.is_on = flag_of(interpreter, arguments, 1);
  return interpreter.none();
}

Value call_get_dtype(Interpreter& interpreter, const CallArguments& arguments) {
  require_cpu(interpreter, arguments);
  return interpreter.constant(dtype_object(interpreter.modes.autocast.dtype));
}

Value call_set_dtype(Interpreter& interpreter, const CallArguments& arguments) {
  require_cpu(interpreter, arguments);
  PyObject* object =
      arguments.positional.size() < 2 ? nullptr : known_object(arguments.positional[1]);
  const auto dtype = object == nullptr ? std::nullopt : dtype_of(object);
  if (!dtype) interpreter.refuse(ReasonCode::unsupported_argument, "the type of an autocast");
  interpreter.modes.autocast.dtype = *dtype;
  return interpreter.none();
}

Value call_keeps_casts(Interpreter& interpreter, const CallArguments&) {
  return interpreter.boolean(interpreter.modes.autocast.keeps_casts);
}

Value call_set_keeps_casts(Interpreter& interpreter, const CallArguments& arguments) {
  interpreter.modes.autocast.keeps_casts = flag_of(interpreter, arguments, 0);
  return interpreter.none();
}

Value call_increment(Interpreter& interpreter, const CallArguments&) {
  return interpreter.integer(++interpreter.modes.autocast.nesting);
}

/// Where the call is in a context already, the outermost one is never left.
Value call_decrement(Interpreter& interpreter, const CallArguments&) {
  const int outside = interpreter.output().environment.autocast ? 1 : 0;
  return interpreter.integer(--interpreter.modes.autocast.nesting + outside);
}

Value call_clear(Interpreter& interpreter, const CallArguments&) {
  interpreter.casts.clear();
  return interpreter.none();
}

}  // namespace

std::vector<std::string_view> cast_operators() {
  std::vector<std::string_view> names;
  for (const graph::OpDef* op : ops::all())
    if (is_listed(op->autocast)) names.push_back(op->name);
  names.insert(names.end(), std::begin(kLower), std::end(kLower));
  names.insert(names.end(), std::begin(kWidest), std::end(kWidest));
  names.insert(names.end(), std::begin(kFull), std::end(kFull));
  return names;
}

namespace {

CallArguments with_casts(Interpreter& interpreter, Policy policy, const CallArguments& arguments) {
  if (!is_listed(policy)) return arguments;
  const DType to = policy == Policy::lower  ? interpreter.modes.autocast.dtype
                   : policy == Policy::full ? DType::f32
                                            : widest(interpreter, arguments);
  Caster caster(interpreter, to);
  CallArguments cast;
  for (const Value& value : arguments.positional) cast.positional.push_back(caster.cast(value));
  for (const auto& [keyword, value] : arguments.keywords)
    cast.keywords.emplace_back(keyword, caster.cast(value));
  return cast;
}

[[noreturn]] void refuse_within(const Frames& frames, std::string_view name) {
  frames.refuse(ReasonCode::mode_active, cat("autocast within ", name));
}

/// Padding by what is there, not by a constant, has operators of its own.
bool is_other_pad(const graph::OpDef* op, const CallArguments& arguments) {
  return op == &op::pad &&
         (arguments.positional.size() > 2 || arguments.keyword("mode") != nullptr);
}

}  // namespace

CallArguments with_casts(Interpreter& interpreter, const graph::OpDef& op,
                         const CallArguments& arguments) {
  if (op.autocast == Policy::unfollowed || is_other_pad(&op, arguments))
    refuse_within(interpreter, op.name);
  return with_casts(interpreter, op.autocast, arguments);
}

CallArguments with_casts(Interpreter& interpreter, std::string_view name, bool is_composite,
                         const CallArguments& arguments) {
  const graph::OpDef* const op = ops::table().find(name);
  const Policy policy = op == nullptr ? policy_of(name) : op->autocast;
  if (policy == Policy::unfollowed || is_other_pad(op, arguments) ||
      (is_composite && !is_listed(policy) && !contains(kWithoutListed, name)))
    refuse_within(interpreter, name);
  return with_casts(interpreter, policy, arguments);
}

Value cast_to(Interpreter& interpreter, const Value& tensor, DType dtype) {
  static const OperatorForm* const to = operator_form_named("Tensor.to");
  CallArguments arguments;
  arguments.positional = {tensor, interpreter.constant(dtype_object(dtype))};
  const WithoutAutocast within(interpreter.modes.autocast);
  NoOverload why;
  Value result = call_overloads(interpreter, *to, imported("torch.Tensor.to"), arguments, why);
  TORCHJANUS_CHECK(result != nullptr, "Tensor.to: ", why.message);
  return result;
}

std::optional<DType> widen_norm(Interpreter& interpreter, const graph::OpDef& op,
                                CallArguments& arguments) {
  if (op.autocast != Policy::widened || arguments.positional.empty()) return std::nullopt;
  auto* input = as<Tensor>(arguments.positional[0]);
  if (input == nullptr) return std::nullopt;
  const DType narrow = read(interpreter, *input)->type.dtype;
  bool has_wide = false;
  const auto see = [&](const Tensor& tensor) {
    has_wide = has_wide || tensor.value->type.dtype == DType::f32;
  };
  for (const Value& value : arguments.positional) visit(interpreter, value, see);
  for (const auto& [keyword, value] : arguments.keywords) visit(interpreter, value, see);
  if (!has_wide || (narrow != DType::bf16 && narrow != DType::f16)) return std::nullopt;
  arguments.positional[0] = cast_to(interpreter, arguments.positional[0], DType::f32);
  return narrow;
}

void refuse_within_autocast(Interpreter& interpreter, std::string_view what) {
  if (interpreter.modes.autocast.is_on)
    interpreter.refuse(ReasonCode::mode_active, cat("autocast around ", what));
}

std::span<const SpecialCallable> autocast_callables() {
  static constexpr SpecialCallable table[] = {
      {"torch._C._is_autocast_available", call_available},
      {"torch._C._get_privateuse1_backend_name", call_private_backend},
      {"torch.is_autocast_enabled", call_is_enabled},
      {"torch.set_autocast_enabled", call_set_enabled},
      {"torch.get_autocast_dtype", call_get_dtype},
      {"torch.set_autocast_dtype", call_set_dtype},
      {"torch.is_autocast_cache_enabled", call_keeps_casts},
      {"torch.set_autocast_cache_enabled", call_set_keeps_casts},
      {"torch.autocast_increment_nesting", call_increment},
      {"torch.autocast_decrement_nesting", call_decrement},
      {"torch.clear_autocast_cache", call_clear},
  };
  return table;
}

}  // namespace janus::frontend
