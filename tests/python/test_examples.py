"""The example scripts print the same under python and under `torchjanus run`.

python tests/python/test_examples.py [EXAMPLE …]     how much of each ran as graphs, and why not more
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

# Options that keep a run short.
SHORT = {
    "lstm_language_model": "--steps 8 --every 1 --hidden 16 --words 300 --batch 4 --length 5",
    "tree_rnn": "--steps 24 --every 4 --hidden 8",
    "tree_lstm": "--steps 10 --every 2 --hidden 8 --batch 2",
    "gan": "--steps 8 --every 1 --batch 8",
    "pix2pix": "--steps 6 --every 1 --batch 2 --size 32 --width 4",
    "varying_length": "--steps 12 --every 1 --hidden 8 --words 50 --longest 30",
    "stochastic_depth": "--steps 12 --every 1 --width 16 --depth 4",
    "adaptive_computation": "--steps 12 --every 1 --hidden 8 --bits 4",
    "beam_search": "--steps 10 --every 1 --searches 6 --hidden 16 --words 12 --width 2",
    "stateful_model": "--steps 12 --every 1 --hidden 8 --inputs 4",
    "dropblock": "--steps 10 --every 1 --batch 4 --width 4",
    "a3c": "--updates 12 --every 1 --longest 6 --hidden 16",
    "ppo": "--rounds 3 --episodes 2 --every 1 --longest 30 --hidden 8 --batch 16",
}
LONG = {
    "resnet50": "--small --steps 5 --every 1 --size 32",
    "inception_v3": "--small --steps 5 --size 75",
}  # fmt: skip


def run_example(name: str, options: str, folder: Path) -> tuple[str, str, dict]:
    """What it prints under python, what under `torchjanus run`, and the counters of the second."""
    script = [str(EXAMPLES / f"{name}.py"), *options.split()]
    stats = folder / "stats.json"
    converted = ["-m", "torchjanus", "run", "--stats", str(stats)]
    outputs = [
        subprocess.run(
            [sys.executable, *interpreter, *script],
            capture_output=True,
            text=True,
            timeout=300,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        for interpreter in ([], converted)
    ]
    for each in outputs:
        assert each.returncode == 0, each.stderr
    assert "internal error" not in outputs[1].stderr, outputs[1].stderr
    return outputs[0].stdout, outputs[1].stdout, json.loads(stats.read_text())


NUMBER = re.compile(r"-?\d+\.\d+")


def check_same(expected: str, actual: str) -> None:
    """The same text; printed losses may differ by what another order of float32 sums makes of them."""
    assert expected
    assert NUMBER.sub("#", expected) == NUMBER.sub("#", actual)
    expected_numbers = [float(number) for number in NUMBER.findall(expected)]
    actual_numbers = [float(number) for number in NUMBER.findall(actual)]
    assert actual_numbers == pytest.approx(expected_numbers, rel=2e-3, abs=2e-3)


def check_example(name: str, options: str, folder: Path) -> None:
    expected, actual, stats = run_example(name, options, folder)
    check_same(expected, actual)
    codes = {each["code"] for each in reasons(stats)}
    assert "internal_error" not in codes, reasons(stats)


@pytest.mark.parametrize("name", sorted(SHORT))
def test_example_prints_the_same(name, tmp_path):
    check_example(name, SHORT[name], tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(LONG))
def test_large_example_prints_the_same(name, tmp_path):
    check_example(name, LONG[name], tmp_path)


def test_every_example_is_tested():
    helpers = {"demo", "lenet", "fashion_mnist", "trees", "shapes", "cartpole"}
    assert {path.stem for path in EXAMPLES.glob("*.py")} - helpers == {*SHORT, *LONG}


# --- the table ---


def reasons(stats: dict) -> list[dict]:
    return [reason for function in stats["functions"] for reason in function["reasons"]]


def main() -> None:
    import tempfile

    for name in sys.argv[1:] or [*SHORT, *LONG]:
        with tempfile.TemporaryDirectory() as folder:
            try:
                expected, actual, stats = run_example(name, {**SHORT, **LONG}[name], Path(folder))
                check_same(expected, actual)
                verdict = "same"
            except AssertionError as error:
                print(f"== {name}: {str(error)[-700:]}", flush=True)
                continue
        print(f"== {name}: {verdict}")
        for each in stats["functions"]:
            print(
                f"  {each['name']}:{each['line']}: {each['state']}, {each['hits']} of "
                f"{each['calls']} calls as graphs, {each['generated']} generated"
            )
            for reason in each["reasons"][:4]:
                print(f"      {Path(reason['file']).name}:{reason['line']} [{reason['code']}]"
                      f" {reason['sentence'][:120]}")  # fmt: skip
        sys.stdout.flush()


if __name__ == "__main__":
    main()
