"""Element-wise operators that tests compare with eager: names in torch and nn.functional, and functions of two
tensors."""

import torch.nn.functional as F

import torch

UNARY = (
    "neg abs sign exp exp2 expm1 log log2 log10 log1p sqrt rsqrt reciprocal square sin cos "
    "tan asin acos atan sinh cosh tanh asinh acosh atanh erf erfc sigmoid floor ceil trunc "
    "round frac isnan isinf isfinite relu logical_not"
)
ACTIVATIONS = (
    "silu mish hardsigmoid hardswish softplus selu celu relu6 elu leaky_relu hardtanh "
    "logsigmoid softsign tanhshrink"
)
BINARY = (
    "add sub mul div floor_divide remainder fmod pow maximum minimum atan2 xlogy eq ne lt "
    "le gt ge logical_and logical_or logical_xor"
)
BITWISE = "bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift"


def power(exponent):
    return lambda x, y: x**exponent


FUNCTIONS = {
    # Elsewhere eager gives an element alone another value than one among others.
    "gelu": lambda x, y: F.gelu(x.clamp(-2.5, 1e30)),
    "gelu by tanh": lambda x, y: F.gelu(x, approximate="tanh"),
    "clamp by numbers": lambda x, y: torch.clamp(x, -0.5, 1.5),
    "clamp by tensors": lambda x, y: torch.clamp(x, y, y + 1),
    "where": lambda x, y: torch.where(x > 0, x, y),
    "lerp": lambda x, y: (torch.lerp(x, y, 0.25), torch.lerp(x, y, 0.75)),
    # Whether a product overflows before it is added differs with contraction: no large factors.
    "addcmul": lambda x, y: torch.addcmul(x, y, y.sign(), value=0.3),
    "addcdiv": lambda x, y: torch.addcdiv(x, y, x, value=0.3),
    "number to a power": lambda x, y: 2.0**x,
    "rounded quotients": lambda x, y: (
        torch.div(x, y, rounding_mode="floor"),
        torch.div(x, y, rounding_mode="trunc"),
    ),
    "casts": lambda x, y: (x.bool(), (x * y).half()),
    **{f"power {exponent}": power(exponent) for exponent in (2, 3, 0.5, -0.5, -1, -2, 1.7, 0, 1)},
}
