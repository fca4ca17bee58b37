"""Python's numbers that vary from call to call: arithmetic, powers, bits, shifts, identity. PYTEST_DONT_REWRITE"""

import pytest
from differential import Program, differential

import torch


@differential(hits=4)
def test_python_float_argument_that_varies():
    def step(x, rate):
        return x * rate + rate**2

    arguments = [(torch.randn(3), 0.1 * index) for index in range(10)]
    return Program(step, arguments)


@differential(hits=4)
def test_python_int_argument_that_varies():
    def step(x, count):
        return x * count + count // 2 - count % 3

    return Program(step, [(torch.randn(3), index) for index in range(2, 12)])


@differential(hits=6)
def test_bits_and_powers_of_ints_that_vary():
    def step(x, a, b, flag):
        numbers = (
            a & b,
            a | b,
            a ^ b,
            ~a,
            a ** (b & 3),
            flag & (a > 0),
            flag | (b > 2),
            flag ^ True,
        )
        return x * (a ^ b), numbers, x + (a**b if b < 4 else a)

    calls = [(torch.randn(3), i * 7 - 20, i % 5, i % 3 == 0) for i in range(16)]
    return Program(step, calls)


@differential(hits=9, graphs=2)
def test_negative_powers_of_ints_that_vary():
    def step(x, n):
        return x * n**-2, n**-1, (-n) ** -3, (n > 4) ** 2, (n * 10**15 + 1) ** -1

    return Program(step, [(torch.randn(3), 2 + index) for index in range(14)])


def negated(n):
    return -n, ~n


def compared_with_the_least(n):
    return n == -(2**63), n > -(2**63), n % 5 == -(2**63), -n - 1 > -(2**63)


def compared_with_the_greatest(n):
    return n < 2**63 - 1, n - 1 < 2**63 - 1, n + 2 > 2**63 - 1


@differential(hits=5)
@pytest.mark.parametrize("use", [negated, compared_with_the_least, compared_with_the_greatest])
def test_ints_at_the_ends_of_64_bits(use):
    def step(x, n):
        return x * 2, use(n)

    numbers = [1, 2, 3, 5, 7, -(2**63), 9, 2**63 - 1, 4, 8, -(2**63) + 1, 6]
    return Program(step, [(torch.randn(3), n) for n in numbers])


@differential(hits=5)
def test_slices_that_end_at_the_ends_of_64_bits():
    def step(x, n):
        return x[-(2**63) + 1 : n].sum(), x[n : 2**63 - 1].sum()

    return Program(step, [(torch.randn(2 + n % 4), n % 3) for n in range(14)])


@differential(hits=5)
def test_negative_powers_of_zero():
    def step(x, n):
        return x * 2, n**-2

    numbers = [3, 4, 5, 6, 7, 0, 8, 9, -4, 0, 11, 12]
    return Program(step, [(torch.randn(3), n) for n in numbers])


@differential(hits=5)
def test_powers_that_come_out_as_floats_or_do_not_fit():
    def step(x, a, b):
        return x * 2, a**b

    exponents = [2, 3, 4, 5, 2, 3, -1, 62, 63, 64, 0, -2, 5]
    return Program(step, [(torch.randn(3), 2 + i % 2, b) for i, b in enumerate(exponents)])


@differential(hits=10)
def test_identity_of_numbers():
    state = {"count": 0}
    five, seven, half, text = 5, 7, 0.5, "text"

    def step(x, a):
        state["count"] += 1
        flag, number = x.sum().item() > 0, state["count"]
        same = flag is True, flag is (a > 2), number is five, number is not seven, number is None
        other = a is a, a is True, flag is number, half is a, text is number, five is seven - 2
        return x * number, same, other

    return Program(step, [(torch.randn(3), i % 5) for i in range(16)], watch=[state])


@pytest.mark.parametrize("name", ["floats", "numbers"])
def test_identity_that_python_decides(name):
    def floats(x):
        half = 0.5
        other = float("0.5")
        return x * 2, half is other

    def numbers(x):
        number, other = x.sum().item(), x.mean().item()
        return x * 2, number is other

    step = {"floats": floats, "numbers": numbers}[name]
    differential(reasons=["expression"])(
        lambda: Program(step, [(torch.randn(3),) for _ in range(8)])
    )()


@differential(hits=3)
def test_shifts():
    def step(x, n):
        return x * (1 << n), n << 2, 1000 >> n, -n >> 1

    return Program(step, [(torch.randn(3), n) for n in (3, 5, 4, 7, 2, 6, 0, 1, 62, 63, 64, 70, 9)])


@differential(hits=4)
def test_shift_by_a_negative_number():
    def step(x, n):
        return x * (1 << n)

    return Program(step, [(torch.randn(3), n) for n in (3, 5, 4, 7, 2, 6, -1, 4, -2)])


@differential(hits=8)
def test_count_from_a_bool():
    def step(x, header):
        return (
            x + 1,
            list(enumerate("ab", header)),
            [type(n) for n, _ in enumerate("ab", start=True)],
        )

    return Program(step, [(torch.randn(3), index % 3 == 0) for index in range(12)])


@differential(reasons=["would_raise"])
def test_count_from_a_float():
    def step(x):
        try:
            return x + 1, list(enumerate("ab", 1.5))
        except TypeError as error:
            return x + 1, str(error)

    return Program(step, [(torch.randn(3),) for _ in range(6)])


@differential(hits=5)
def test_round_with_and_without_digits():
    def step(x):
        total = x.sum().item()
        digits = int(total) % 3
        whole = round(total, None), round(total), round(total > 1), round(257, digits)
        parts = round(total, 1), round(total, ndigits=2), round(total, True), round(2.567, digits)
        return x * 2, whole, [type(each) for each in whole], parts

    return Program(step, [(torch.rand(3),) for _ in range(8)])


def of_a_list(total):
    return round([total, 2.0])


def of_a_text(total):
    return round(f"{total}")


def to_a_float(total):
    return round(total, 1.5)


@pytest.mark.parametrize("rounded", [of_a_list, of_a_text, to_a_float])
@differential(reasons=["expression"])
def test_round_of_what_is_no_number(rounded):
    def step(x):
        try:
            return rounded(x.sum().item())
        except TypeError as error:
            return str(error)

    return Program(step, [(torch.rand(3),) for _ in range(6)])
