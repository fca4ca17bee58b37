"""Whole-script mode: `torchjanus run` must print, fail and exit exactly as python does."""

import json
import signal
import subprocess
import sys
import textwrap
import time

import pytest

TRAINING = """
    import torch
    import torch.nn.functional as F
    from torch import nn

    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    data = [(torch.randn(5, 4), torch.randint(0, 3, (5,))) for _ in range(12)]
"""

SCRIPTS = {
    "module level loop": TRAINING + """
    total = 0.0
    for step, (x, y) in enumerate(data):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item()
        print(f"step {step}: {loss.item():.4f}")
    print(f"{total:.4f}", step, x.shape, sorted(n for n in globals() if not n.startswith("__")))
    """,
    "inside a function": TRAINING + """
    def train(epochs):
        seen = 0
        for epoch in range(epochs):
            running = 0.0
            for x, y in data:
                optimizer.zero_grad()
                loss = F.cross_entropy(model(x), y)
                loss.backward()
                optimizer.step()
                running += loss.item()
                seen += len(x)
            print(f"epoch {epoch}: {running / len(data):.4f}", seen)
        return loss.item(), sorted(locals())

    if __name__ == "__main__":
        loss, names = train(3)
        print(f"{loss:.4f}", names)
    """,
    "log records name the function around": TRAINING + """
    import logging

    logging.basicConfig(format="%(funcName)s:%(lineno)d %(message)s", level=logging.INFO)
    logging.root.handlers[0].setStream(__import__("sys").stdout)

    def fit():
        for step, (x, y) in enumerate(data):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            logging.info("step %d", step)

    fit()
    for step, (x, y) in enumerate(data):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        logging.info("step %d", step)
    """,
    "clipping of the parameters' gradients": TRAINING + """
    def train():
        total = 0.0
        for x, y in data:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            total += nn.utils.clip_grad_norm_(model.parameters(), 0.5).item()
            optimizer.step()
        return total

    print(f"{train():.4f}")
    """,
    "break, continue, return": TRAINING + """
    def train():
        for step, (x, y) in enumerate(data * 3):
            if step % 4 == 3:
                continue
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            if step == 20:
                break
        else:
            print("never")
        for step, (x, y) in enumerate(data):
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            if step == 9:
                return round(loss.item(), 4)

    print(train())
    """,
    "unbound afterwards": TRAINING + """
    def train(batches):
        for x, y in batches:
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            if x.shape[0] > 100:
                large = True
        return large

    try:
        train(data)
    except UnboundLocalError as error:
        print(type(error).__name__, error)
    """,
    "unbound inside": TRAINING + """
    def train(batches):
        for x, y in batches:
            loss = F.cross_entropy(model(x), y) + missing
            loss.backward()
            missing = 0.0

    train(data)
    """,
    "evaluation": TRAINING + """
    def evaluate():
        model.eval()
        correct = 0
        with torch.no_grad():
            for x, y in data:
                correct += (model(x).argmax(1) == y).sum().item()
        return correct

    print(evaluate(), evaluate())
    """,
    "evaluation by slices": TRAINING + """
    images, labels = torch.randn(57, 4), torch.randint(0, 3, (57,))

    def evaluate(batch):
        correct, seen = 0, 0
        with torch.no_grad():
            for start in range(0, len(images), batch):
                scores = model(images[start : start + batch])
                same = scores.argmax(1) == labels[start : start + batch]
                correct += same.sum().item()
                seen += len(scores)
        return correct, seen

    print(evaluate(5), evaluate(5))
    """,
    "classes and methods": TRAINING + """
    class Trainer:
        def __init__(self):
            self.history = []

        def train_step(self, x, y):
            '''One step.'''
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            return loss.item()

        def fit(self):
            for x, y in data:
                self.history.append(self.train_step(x, y))

    trainer = Trainer()
    trainer.fit()
    print([round(loss, 4) for loss in trainer.history], Trainer.train_step.__doc__)
    """,
    "error in the loop": TRAINING + """
    def train():
        for step, (x, y) in enumerate(data):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x if step < 8 else x[:, :3]), y)
            loss.backward()
            optimizer.step()

    train()
    """,
    "imports and definitions in the loop": TRAINING + """
    for step, (x, y) in enumerate(data * 2):
        import math

        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y) * math.sqrt(2)
        loss.backward()
        optimizer.step()

        class Record:
            value = loss.item()

        def shown(value):
            return f"{value:.4f} of step {step}"

        print(shown(Record.value))
    print(sorted(n for n in globals() if not n.startswith("__")))
    """,
    "definitions in a function that trains": TRAINING + """
    def train(batch, scale):
        def objective(scores, labels):
            return F.cross_entropy(scores, labels) * scale

        from math import floor

        x, y = batch
        optimizer.zero_grad()
        loss = objective(model(x), y)
        loss.backward()
        optimizer.step()
        return floor(loss.item() * 1e4), sorted(locals())

    for batch in data * 2:
        print(train(batch, 0.5))
    """,
    "a generator that trains": TRAINING + """
    def steps(batches):
        for x, y in batches:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            sent = yield loss.item()
            if sent is not None:
                print("sent", sent)

    training = steps(data * 2)
    print(f"{next(training):.4f}")
    for step, value in enumerate(training):
        print(f"{value:.4f}")
        if step == 9:
            print(f"{training.send(step):.4f}")
        if step == 15:
            training.close()
    """,
    "exit code": TRAINING + """
    import sys
    for step, (x, y) in enumerate(data):
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        if step == 7:
            sys.exit(3)
    """,
    "arguments": """
    import sys
    print(sys.argv[1:], __name__, __file__.endswith("program.py"), __doc__, sys.path[0] == __file__.rpartition("/")[0])
    """,
    "syntax error": """
    def broken(:
        pass
    """,
}  # fmt: skip


def run(folder, *command):
    return subprocess.run(
        [sys.executable, *command, "one", "--two"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
    )


def run_both_ways(folder, *options):
    """`program.py` under python, the same converted, and the counters of the latter."""
    expected = run(folder, "program.py")
    stats = folder / "stats.json"
    actual = run(folder, "-m", "torchjanus", "run", *options, "--stats", str(stats), "program.py")
    return expected, actual, json.loads(stats.read_text())["functions"] if stats.exists() else []


@pytest.mark.parametrize("name", SCRIPTS)
def test_script_behaves_as_under_python(name, tmp_path):
    (tmp_path / "program.py").write_text(textwrap.dedent(SCRIPTS[name]))
    expected, actual, functions = run_both_ways(tmp_path)
    assert actual.stdout == expected.stdout
    assert actual.stderr == expected.stderr
    assert actual.returncode == expected.returncode
    if "optimizer" in SCRIPTS[name] and name != "unbound inside":
        assert any(function["hits"] > 0 for function in functions), functions


def test_loops_around_what_runs_as_graphs_already_are_left_alone(tmp_path):
    """A graph of a whole epoch would be its steps in a row: much to make, and nothing to win."""
    (tmp_path / "program.py").write_text(
        textwrap.dedent("""
        import torch
        from torch import nn

        torch.manual_seed(0)
        model = nn.Sequential(*[nn.Linear(64, 64) for _ in range(6)])
        optimizer = torch.optim.Adam(model.parameters(), 0.01)

        def train():
            total = 0.0
            for _ in range(40):
                optimizer.zero_grad()
                loss = model(torch.randn(32, 64)).square().mean()
                loss.backward()
                optimizer.step()
                total += loss.item()
            return total

        for epoch in range(8):
            print(f"{train():.4f}")
        """)
    )
    stats = tmp_path / "stats.json"
    run(tmp_path, "-m", "torchjanus", "run", "--stats", str(stats), "program.py")
    functions = {each["line"]: each for each in json.loads(stats.read_text())["functions"]}
    iterations, epochs = functions[min(functions)], functions[max(functions)]
    assert iterations["hits"] > 50  # compiled in the background, which takes as long as it takes
    assert epochs["state"] == "imperative"
    assert [reason["code"] for reason in epochs["reasons"]] == ["limit"]


def test_variables_of_loops_around_vary_from_the_start(tmp_path):
    """The first graph is made during the first epoch, and serves the others."""
    (tmp_path / "program.py").write_text(
        textwrap.dedent("""
        import torch
        from torch import nn

        torch.manual_seed(0)
        model = nn.Linear(4, 4)
        optimizer = torch.optim.SGD(model.parameters(), 0.01)

        def train(epochs):
            for epoch, rate in enumerate([0.1, 0.2, 0.3][:epochs]):
                for batch in range(6):
                    optimizer.zero_grad(set_to_none=False)
                    loss = model(torch.randn(3, 4)).square().mean() * rate
                    loss.backward()
                    optimizer.step()
                    print(epoch, batch, f"{loss.item():.4f}")

        for p in model.parameters():
            p.grad = torch.zeros_like(p)
        train(3)
        """)
    )
    expected, actual, functions = run_both_ways(tmp_path)
    assert actual.stdout == expected.stdout
    (loop,) = (each for each in functions if each["hits"] > 0)
    assert loop["generated"] == 1
    assert loop["hits"] == 15


def test_variables_of_a_function_that_ends(tmp_path):
    """Nobody sees what they hold, so sides of a branch may leave different things in them."""
    (tmp_path / "program.py").write_text(
        textwrap.dedent("""
        import torch
        from torch import nn

        torch.manual_seed(0)
        model = nn.Linear(4, 4)
        optimizer = torch.optim.SGD(model.parameters(), 0.001)
        calls, kept = 0, None

        def train(x):
            global calls, kept
            optimizer.zero_grad()
            if x.sum() > 0:
                h = model(x)
                kept = h[0].detach()
            else:
                h = model(x).sum(0)
                kept = h.detach()
            loss = h.square().mean()
            loss.backward()
            optimizer.step()
            calls += 1

        def train_without_trace(x):
            optimizer.zero_grad()
            if x.sum() > 0:
                h = model(x)
                loss = h.square().mean()
            else:
                h = model(x).sum(0)
                loss = h.square().sum()
            loss.backward()
            optimizer.step()
            return loss.item()

        inputs = [torch.randn(3, 4) for _ in range(60)]
        list(map(train, inputs))
        losses = list(map(train_without_trace, inputs))
        print(f"{sum(losses):.4f} {calls} {kept.sum().item():.4f}")
        """)
    )
    expected, actual, functions = run_both_ways(tmp_path)
    assert actual.stdout == expected.stdout
    functions = {each["name"]: each for each in functions}
    assert functions["train_without_trace"]["hits"] > 45
    assert functions["train_without_trace"]["graphs"] == 1


def test_imported_files_of_the_user_are_converted(tmp_path):
    (tmp_path / "helper.py").write_text(
        textwrap.dedent(TRAINING)
        + textwrap.dedent("""
        def train():
            for x, y in data:
                optimizer.zero_grad()
                loss = F.cross_entropy(model(x), y)
                loss.backward()
                optimizer.step()
            return loss.item()
        """)
    )
    (tmp_path / "program.py").write_text("import helper\n\nprint(f'{helper.train():.4f}')\n")
    expected, actual, functions = run_both_ways(tmp_path)
    assert (actual.stdout, actual.stderr) == (expected.stdout, expected.stderr)
    assert any(function["hits"] > 0 for function in functions)


def test_module_option_and_missing_script(tmp_path):
    (tmp_path / "program.py").write_text(
        "import sys\nprint(sys.argv[1:], __name__, __spec__.name)\n"
    )
    module = run(tmp_path, "-m", "torchjanus", "run", "-m", "program")
    assert module.stdout == "['one', '--two'] __main__ program\n", module.stderr
    missing = run(tmp_path, "-m", "torchjanus", "run", "missing.py")
    assert missing.returncode == 2 and "can't open file" in missing.stderr
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("")
    for name in ("package", "nowhere"):
        told = run(tmp_path, "-m", "torchjanus", "run", "-m", name).stderr
        python = run(tmp_path, "-m", name).stderr
        assert told.split(": ")[1:] == python.split(": ")[1:]


def test_script_has_a_loader(tmp_path):
    (tmp_path / "program.py").write_text(
        "import pkgutil\nprint(type(__loader__).__name__, pkgutil.get_data('__main__', 'program.py')[:6])\n"
    )
    assert run(tmp_path, "-m", "torchjanus", "run", "program.py").stdout == (
        run(tmp_path, "program.py").stdout
    )


def test_explain_option_reports_on_standard_error(tmp_path):
    (tmp_path / "program.py").write_text(textwrap.dedent(SCRIPTS["module level loop"]))
    outcome = run(tmp_path, "-m", "torchjanus", "run", "--explain", "program.py")
    assert "program.py" in outcome.stderr and "loss.backward()" in outcome.stderr


def test_interrupt_ends_the_script(tmp_path):
    source = textwrap.dedent(TRAINING) + textwrap.dedent("""
        import atexit, itertools
        atexit.register(print, "ended")
        print("ready", flush=True)
        for x, y in itertools.cycle(data):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
        """)
    (tmp_path / "program.py").write_text(source)
    process = subprocess.Popen(
        [sys.executable, "-m", "torchjanus", "run", "program.py"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout.readline() == "ready\n"
    time.sleep(1.0)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=30)
    assert process.returncode == -signal.SIGINT and output == "ended\n"
    assert errors.rstrip().endswith("KeyboardInterrupt")


DECORATED = """
    import torch
    import torchjanus

    torch.manual_seed(0)
    model = torch.nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    @torchjanus.function
    def train_step(x):
        optimizer.zero_grad()
        loss = model(x).pow(2).sum()
        loss.backward()
        optimizer.step()
        return loss.item()

    def plain_step(x):
        optimizer.zero_grad()
        loss = model(x).pow(2).sum()
        loss.backward()
        optimizer.step()
        return loss.item()

    for _ in range(8):
        loss = STEP(torch.randn(5, 4))
    print(f"{loss:.4f}")
    print(f"{train_step(torch.ones(5, 4)):.4f} {plain_step(torch.ones(5, 4)):.4f}")
"""


@pytest.mark.parametrize("step", ["train_step", "plain_step"])
def test_function_is_reported_once_and_has_a_source(step, tmp_path):
    """A loop's graph contains the functions that it calls, rewritten ones too."""
    (tmp_path / "program.py").write_text(textwrap.dedent(DECORATED).replace("STEP", step))
    expected, actual, functions = run_both_ways(tmp_path, "--explain")
    assert actual.stdout == expected.stdout, actual.stderr
    reasons = [reason for function in functions for reason in function["reasons"]]
    assert "no_source" not in [reason["code"] for reason in reasons], reasons
    (loop,) = (function for function in functions if "loop" in function["name"])
    assert loop["hits"] >= 4, functions
    heads = [line for line in actual.stderr.splitlines() if line.startswith("train_step  (")]
    assert len(heads) == 1, actual.stderr
