"""The example scripts print the same under python and under `torchjanus run`.

python tests/python/command_line/test_examples.py [EXAMPLE …]     how much of each ran as graphs, and why not more
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"

# Options that keep a run short.
SHORT = {
    "sampled_softmax": "--steps 8 --every 1 --hidden 16 --words 300 --batch 4 --length 5 --sample 20",
    "lstm_language_model": "--steps 8 --every 1 --hidden 16 --words 300 --batch 4 --length 5",
    "small_gpt": "--steps 8 --every 1 --width 16 --layers 2 --heads 2 --batch 3 --length 9",
    "data_parallel": "--steps 10 --every 2 --width 16 --layers 2 --heads 2 --batch 3 --length 9",
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
    "meta_operators": "--steps 10 --every 1 --batch 4 --channels 3 --size 6",
    "ppo": "--rounds 3 --episodes 2 --every 1 --longest 30 --hidden 8 --batch 16",
    "terra/bert_classification": "--steps 8 --every 1 --batch 4 --width 16 --layers 2 --heads 2 --longest 20",
    "terra/bert_question_answering": "--steps 8 --every 1 --batch 3 --width 16 --layers 2 --heads 2 --longest 32",
    "terra/dcgan": "--steps 8 --every 2 --batch 4 --width 4 --noise 8",
    "terra/dropblock": "--steps 12 --every 1 --batch 4 --width 4",
    "terra/faster_rcnn": "--steps 8 --every 1 --width 4 --hidden 16 --size 64",
    "terra/gpt2": "--steps 8 --every 2 --batch 2 --width 16 --layers 2 --heads 2 --longest 20 --letters 6",
    "terra/music_transformer": "--steps 8 --every 1 --batch 3 --width 16 --layers 2 --heads 2 --longest 32",
    "terra/resnet50": "--steps 6 --every 1 --batch 4 --width 4 --size 32",
    "terra/sdpoint": "--steps 12 --every 1 --batch 4 --width 4 --size 16",
    "terra/yolo_v3": "--steps 6 --every 1 --batch 2 --width 4 --size 64",
}
# How many calls of the script's own functions and loops run as graphs at least.
HITS = {
    "sampled_softmax": 5, "lstm_language_model": 5, "small_gpt": 5, "tree_rnn": 19, "tree_lstm": 3, "gan": 5,
    "pix2pix": 3, "varying_length": 9, "stochastic_depth": 9, "adaptive_computation": 9, "beam_search": 7,
    "stateful_model": 9, "dropblock": 7, "a3c": 30, "meta_operators": 6,
}  # fmt: skip
NEEDS_ALE = {"pong": "--updates 4 --every 1 --longest 5 --hidden 8"}
LONG = {
    "resnet50": "--small --steps 5 --every 1 --size 32",
    "inception_v3": "--small --steps 5 --size 75",
}  # fmt: skip


class Runner:
    """A process that has loaded torch and forks for every script."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--serve"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )

    def run(self, arguments: list[str], converted: bool, folder: Path) -> tuple[str, str]:
        """Runs a script; gives what it printed and what it wrote to stderr."""
        request = {"arguments": arguments, "converted": converted, "folder": str(folder)}
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        status = int(self.process.stdout.readline())
        printed, errors = (folder / "stdout").read_text(), (folder / "stderr").read_text()
        assert status == 0, errors
        return printed, errors

    def stop(self) -> None:
        self.process.stdin.close()
        self.process.wait()


def serve() -> None:
    import torch  # noqa: F401
    import torchjanus  # noqa: F401

    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            run_in_child(**request)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def run_in_child(arguments: list[str], converted: bool, folder: str) -> None:
    import runpy
    import traceback

    from torchjanus import command

    for number, name in ((1, "stdout"), (2, "stderr")):
        os.dup2(os.open(f"{folder}/{name}", os.O_CREAT | os.O_WRONLY | os.O_TRUNC), number)
    code = 0
    try:
        if converted:
            code = command.main(["run", "--stats", f"{folder}/stats.json", *arguments])
        else:
            sys.argv = arguments
            sys.path[0] = str(Path(arguments[0]).parent)
            runpy.run_path(arguments[0], run_name="__main__")
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def run_example(runner: Runner, name: str, folder: Path) -> tuple[str, str, dict]:
    """What it prints under python, what under `torchjanus run`, and the counters of the second."""
    script = [str(EXAMPLES / f"{name}.py"), *{**SHORT, **NEEDS_ALE, **LONG}[name].split()]
    expected, _ = runner.run(script, False, folder)
    actual, errors = runner.run(script, True, folder)
    assert "internal error" not in errors, errors
    return expected, actual, json.loads((folder / "stats.json").read_text())


NUMBER = re.compile(r"-?\d+\.\d+")


def check_same(expected: str, actual: str) -> None:
    """The same text; printed losses may differ by what another order of float32 sums makes of them."""
    assert expected
    assert NUMBER.sub("#", expected) == NUMBER.sub("#", actual)
    expected_numbers = [float(number) for number in NUMBER.findall(expected)]
    actual_numbers = [float(number) for number in NUMBER.findall(actual)]
    assert actual_numbers == pytest.approx(expected_numbers, rel=2e-3, abs=2e-3)


def check_example(runner: Runner, name: str, folder: Path) -> None:
    expected, actual, stats = run_example(runner, name, folder)
    check_same(expected, actual)
    codes = {each["code"] for each in reasons(stats)}
    assert "internal_error" not in codes, reasons(stats)
    hits = {each["name"]: each["hits"] for each in own_functions(stats, name)}
    assert sum(hits.values()) >= HITS.get(name, 1), (hits, reasons(stats))


def own_functions(stats: dict, name: str) -> list[dict]:
    """Without what helpers do, such as loading data."""
    return [each for each in stats["functions"] if Path(each["file"]).stem == Path(name).stem]


@pytest.fixture(scope="module")
def runner():
    runner = Runner()
    yield runner
    runner.stop()


@pytest.mark.parametrize("name", sorted(SHORT))
def test_example_prints_the_same(runner, name, tmp_path):
    check_example(runner, name, tmp_path)


@pytest.mark.parametrize("name", sorted(NEEDS_ALE))
def test_example_of_an_atari_game_prints_the_same(runner, name, tmp_path):
    pytest.importorskip("ale_py")
    pytest.importorskip("gymnasium")
    check_example(runner, name, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(LONG))
def test_large_example_prints_the_same(runner, name, tmp_path):
    check_example(runner, name, tmp_path)


def test_every_example_is_tested():
    helpers = {
        "demo",
        "training_page",
        "curves",
        "lenet",
        "fashion_mnist",
        "trees",
        "shapes",
        "cartpole",
        "terra/common",
    }
    found = {str(path.relative_to(EXAMPLES).with_suffix("")) for path in EXAMPLES.rglob("*.py")}
    found = {each for each in found if not each.startswith("notebooks/")}  # run as notebooks
    assert found - helpers == {*SHORT, *NEEDS_ALE, *LONG}


# --- the table ---


def reasons(stats: dict) -> list[dict]:
    return [reason for function in stats["functions"] for reason in function["reasons"]]


def main() -> None:
    import tempfile

    runner = Runner()
    for name in sys.argv[1:] or [*SHORT, *LONG]:
        with tempfile.TemporaryDirectory() as folder:
            try:
                expected, actual, stats = run_example(runner, name, Path(folder))
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
    runner.stop()


if __name__ == "__main__":
    if sys.argv[1:] == ["--serve"]:
        serve()
    else:
        main()
