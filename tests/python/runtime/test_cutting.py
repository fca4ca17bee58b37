"""Cutting instead of giving up: what stands around a statement that can't be converted keeps its graphs."""

import io
import re
import threading
import time

import pytest
import torch.nn.functional as F
from differential import Call, Program, differential
from scripts import hits, run_both

import torch
import torchjanus
from torch import nn

# `record` is opaque and changes state: nothing that calls it can be converted.
SETTING = """
    import torch
    import torch.nn.functional as F
    from torch import nn

    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    data = [(torch.randn(5, 4), torch.randint(0, 3, (5,))) for _ in range(14)]
    log = __import__("io").StringIO()

    class Metrics:
        def __init__(self):
            self.seen = 0

        def update(self, value):
            log.write(f"{float(torch.as_tensor(value).detach()):.9f} ")
            log.truncate()
            self.seen += 1

    metrics = Metrics()
"""

# name: (script, least number of segments that run as graphs)
SCRIPTS = {
    "a statement in the middle": ("""
    def train():
        for x, y in data:
            optimizer.zero_grad()
            out = model(x)
            loss = F.cross_entropy(out, y)
            metrics.update(loss)
            loss.backward()
            optimizer.step()
        return loss

    result = train()
    """, 2),
    "at module level": ("""
    for x, y in data:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        metrics.update(loss)
        optimizer.step()
        total = sum(parameter.sum().item() for parameter in model.parameters())
    print(sorted(name for name in globals() if not name.startswith("__")))
    """, 2),
    "the first and the last statement": ("""
    def train():
        for x, y in data:
            metrics.update(x.sum())
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            metrics.update(loss)
        return loss

    result = train()
    """, 1),
    "every second statement": ("""
    def train():
        history = []
        for x, y in data:
            scores = model(x).softmax(1).log() * 2 + 1
            metrics.update(scores[0, 0])
            loss = F.nll_loss(scores, y) + scores.sum() * 0.1
            metrics.update(loss)
            optimizer.zero_grad()
            loss.backward()
            metrics.update(loss)
            optimizer.step()
            history.append(loss.item())
        return history

    result = train()
    """, 2),
    "backward across the cut": ("""
    def train():
        for x, y in data:
            hidden = model[1](model[0](x))
            metrics.update(hidden.sum())
            scores = model[2](hidden)
            loss = F.cross_entropy(scores, y) + hidden.square().mean()
            metrics.update(loss)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return [parameter.grad for parameter in model.parameters()]

    grads = train()
    """, 2),
    "writes in place between segments": ("""
    def train():
        state = torch.zeros(3)
        for x, y in data:
            with torch.no_grad():
                state.mul_(0.9).add_(model(x).mean(0) * 0.1)
            metrics.update(state.sum())
            state += 1
            scores = model(x) + state.exp() - state
            loss = F.cross_entropy(scores, y)
            metrics.update(loss)
            state -= scores.detach().mean(0)
        return state, state._version

    state, version = train()
    """, 2),
    "break in a segment": ("""
    def train():
        for step, (x, y) in enumerate(data * 3):
            metrics.update(step)
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            if step == 20:
                break
            after = step
        else:
            print("never")
        return step, after, loss

    result = train()
    """, 1),
    "continue in a segment": ("""
    def train():
        kept = 0
        for step, (x, y) in enumerate(data * 3):
            metrics.update(step)
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            if step % 4 == 3:
                continue
            kept += 1
            metrics.update(loss)
            optimizer.step()
            optimizer.zero_grad()
        return kept, loss

    result = train()
    """, 1),
    "return in a segment": ("""
    def train():
        for step, (x, y) in enumerate(data * 3):
            metrics.update(step)
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            if step == 17:
                return step, loss
            late = step
            metrics.update(late)

    result = train()
    """, 1),
    "an exception in the cut statement": ("""
    class Strict:
        def check(self, value):
            log.write("checked ")
            if metrics.seen == 9:
                raise ValueError("ninth")
            metrics.update(value)

    def train():
        strict = Strict()
        for x, y in data:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            strict.check(loss)
            loss.backward()
            optimizer.step()

    train()
    """, 1),
    "an exception in a segment": ("""
    def train():
        for step, (x, y) in enumerate(data):
            optimizer.zero_grad()
            metrics.update(step)
            loss = F.cross_entropy(model(x if step < 10 else x[:, :3]), y)
            loss.backward()

    train()
    """, 1),
    "an exception that is caught around": ("""
    def train():
        caught = 0
        for step, (x, y) in enumerate(data):
            try:
                optimizer.zero_grad()
                metrics.update(step)
                loss = F.cross_entropy(model(x if step % 5 else x[:, :3]), y)
                loss.backward()
                optimizer.step()
            except RuntimeError as error:
                caught += 1
            finally:
                metrics.update(caught)
        return caught, "error" in locals(), loss

    result = train()
    """, 1),
    "an assumption fails in the second segment": ("""
    def train():
        scale = 1.0
        for step, (x, y) in enumerate(data * 2):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            metrics.update(loss)
            if step == 15:
                model.train(False)
            if step == 18:
                optimizer.param_groups[0]["lr"] = 0.01
            width = 3 if step % 7 else 2
            part = model(x)[:, :width]
            penalty = (part * scale).square().mean() + part.abs().mean()
            penalty.backward()
            optimizer.step()
        return penalty

    result = train()
    """, 2),
    "variables that are unbound": ("""
    def train():
        for step, (x, y) in enumerate(data):
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            metrics.update(loss)
            if step > 100:
                large = x
            small = x * 2 + loss.detach() - 1
            del small
            metrics.update(step)
        return "large" in locals(), "small" in locals(), large

    train()
    """, 1),
    "unbound in a segment": ("""
    def train():
        for step, (x, y) in enumerate(data):
            metrics.update(step)
            if step < 8:
                factor = 1.0
            elif step == 8:
                del factor
            loss = F.cross_entropy(model(x), y) * factor
            loss.backward()

    train()
    """, 1),
    "sometimes refused": ("""
    def train():
        for step, (x, y) in enumerate(data * 4):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            if step % 20 == 19:
                metrics.update(loss)
        return loss

    result = train()
    """, 1),
    "nested statements": ("""
    def train():
        for step, (x, y) in enumerate(data * 2):
            optimizer.zero_grad()
            with torch.enable_grad():
                scores = model(x)
                metrics.update(scores.sum())
                loss = F.cross_entropy(scores, y) + scores.square().mean()
                if step % 2:
                    metrics.update(loss)
                    loss = loss * 2 + scores.sum() * 0.01 - 1
            loss.backward()
            optimizer.step()
        return loss

    result = train()
    """, 2),
    "an inner loop": ("""
    def train():
        for x, y in data:
            loss = 0.0
            for row in range(3):
                scores = model(x[row]).softmax(0).log() * 2
                metrics.update(scores[0])
                loss = loss + scores.square().sum() + scores.abs().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return loss

    result = train()
    """, 2),
    "a global and a nonlocal variable": ("""
    best = 100.0
    count = 0

    def train():
        smallest = 100.0
        def one_epoch():
            global best, count
            nonlocal smallest
            for x, y in data:
                loss = F.cross_entropy(model(x), y)
                loss.backward()
                metrics.update(loss)
                value = loss.item() + model(x).sum().item() * 0.0
                count += 1
                if value < best:
                    best = value
                if count > 1000:
                    smallest = value
        one_epoch()
        return smallest

    result = train()
    """, 1),
    "a closure over variables": ("""
    def train():
        factor = 1.0
        penalty = lambda: (model[0].weight * factor).square().sum()
        for x, y in data:
            factor = factor * 0.9
            metrics.update(factor)
            loss = F.cross_entropy(model(x), y) + penalty()
            optimizer.zero_grad()
            loss.backward()
            metrics.update(loss)
            optimizer.step()
        return loss, penalty()

    loss, last = train()
    """, 1),
    "recursion": ("""
    def train(depth):
        for x, y in data:
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            if depth > 0:
                train(depth - 1)
            metrics.update(loss)
            optimizer.step()
            optimizer.zero_grad()
        return loss

    result = train(1)
    """, 1),
    "a method and mangled names": ("""
    class Trainer:
        def __init__(self):
            self.__count = 0

        def fit(self):
            for x, __y in data:
                optimizer.zero_grad()
                __loss = F.cross_entropy(model(x), __y)
                __loss.backward()
                metrics.update(__loss)
                self.__count += 1
                optimizer.step()
                gone = __loss * 2 + x.sum() - 3
                del __loss
            return sorted(locals())

    print(Trainer().fit())
    """, 0),
    "try, finally and return": ("""
    def step(x, y):
        try:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            metrics.update(loss)
            optimizer.step()
            return loss.item()
        finally:
            metrics.update(-1)

    print([round(step(x, y), 9) for x, y in data])
    """, 1),
    "definitions in the body": ("""
    def train():
        for x, y in data:
            optimizer.zero_grad()
            def criterion(scores, scale=2):
                return F.cross_entropy(scores, y) * scale
            loss = criterion(model(x))
            loss.backward()
            optimizer.step()
            metrics.update(loss)
        return loss

    result = train()
    """, 0),
    "random numbers": ("""
    def train():
        for x, y in data:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(F.dropout(x, 0.3)), y)
            loss.backward()
            metrics.update(torch.rand(()))
            noise = torch.randn(3) * 2 + torch.rand(3) - 1
            metrics.update(noise.sum())
            optimizer.step()
        return noise

    noise = train()
    """, 2),
}  # fmt: skip


@pytest.mark.parametrize("name", SCRIPTS)
def test_cut_scripts_behave_as_under_python(name, tmp_path):
    program, graphs = SCRIPTS[name]
    stats = run_both(SETTING + program, tmp_path)
    assert len(hits(stats)) >= graphs, [
        (s["name"], s["state"], s["hits"], s["reasons"]) for s in stats
    ]
    for each in stats:
        assert "internal_error" not in [reason["code"] for reason in each["reasons"]], each


def test_a_closure_reads_what_the_statements_wrote(tmp_path):
    stats = run_both(
        SETTING
        + """
    def train():
        factor, history = 1.0, []
        penalty = lambda: (model[0].weight * factor).square().sum()
        for x, y in data:
            factor = factor * 0.9
            loss = F.cross_entropy(model(x), y) + penalty()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            history.append(loss.item())
        return history

    history = train()
    """,
        tmp_path,
    )
    assert hits(stats)


# --- converted functions --------------------------------------------------------------------------


class Recorder:
    """Keeps what it is given; opaque to the generator because it truncates a file object."""

    def __init__(self):
        self.text = io.StringIO()
        self.count = 0

    def record(self, value):
        self.text.write(f"{float(torch.as_tensor(value).detach()):.9f} ")
        self.text.truncate()
        self.count += 1

    def __deepcopy__(self, memo):
        raise AssertionError("never copied")


def setting():
    recorder = Recorder()
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    batches = [(torch.randn(5, 4), torch.randint(0, 3, (5,))) for _ in range(14)]
    return recorder, model, optimizer, batches


@differential(hits=8)
def test_function_with_a_statement_in_the_middle():
    recorder, model, optimizer, batches = setting()

    def step(x, y):
        """A step."""
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        recorder.record(loss)
        loss.backward()
        optimizer.step()
        return loss

    return Program(step, batches, watch=[model, optimizer, recorder])


@differential(hits=8)
def test_function_whose_callee_is_refused():
    recorder, model, optimizer, batches = setting()
    scale = 2.0

    def train(x, y, *, weight=0.5):
        nonlocal scale
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y) * weight * scale
        recorder.record(loss)
        loss.backward()
        optimizer.step()
        scale = scale * 0.9
        return loss

    def step(x, y):
        return train(x, y, weight=0.25)

    code = train.__code__

    def look():
        assert train(*batches[0]).requires_grad
        assert (train.__name__, train.__code__.co_name) == ("train", code.co_name)

    calls = [*batches, look, *batches]
    return Program(step, calls, watch=[model, optimizer, recorder])


@differential(hits=8)
def test_converted_callee_that_is_refused():
    recorder, model, optimizer, batches = setting()

    def loss_of(x, y):
        scores = model(x)
        recorder.record(scores.sum())
        return F.cross_entropy(scores.log_softmax(1), y) * 2 + 1

    loss_of = torchjanus.function(loss_of)
    plain = loss_of.__wrapped__.__code__

    def step(x, y):
        optimizer.zero_grad()
        loss = loss_of(x, y)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss

    def look():
        assert loss_of.__wrapped__.__code__ is plain

    return Program(step, [*batches, look, *batches], watch=[model, optimizer, recorder])


@differential(hits=8)
def test_function_that_returns_in_a_segment():
    recorder, model, optimizer, batches = setting()

    def step(x, y, limit=0.0):
        recorder.record(x.sum())
        loss = F.cross_entropy(model(x), y) * 2 + 1
        if limit > 0.5:
            return loss.item()
        loss.backward()
        recorder.record(loss)
        optimizer.step()
        return loss

    calls = [Call(batch, {"limit": float(i % 2)}) for i, batch in enumerate(batches * 2)]
    return Program(step, calls, watch=[model, optimizer, recorder])


@differential(hits=8)
def test_function_with_default_closure_and_keyword():
    recorder, model, _, batches = setting()
    scale, offset = torch.full((3,), 2.0), [1.0]

    def step(x, y, *rest, weight=0.5, **options):
        nonlocal scale
        scores = model(x) * scale + offset[0]
        recorder.record(scores.sum())
        scale = scale * 0.9
        result = F.cross_entropy(scores, y) * weight - scores.mean() + len(rest) + len(options)
        return result, [name for name in sorted(locals())]

    return Program(step, batches * 2, watch=[model, recorder, offset])


@differential(hits=8)
def test_method_with_super_and_assumption_that_fails():
    recorder, model, _, batches = setting()

    class Base:
        def __init__(self):
            self.scale = 1.0

        def loss(self, scores, y):
            return F.cross_entropy(scores, y) * self.scale

    class Derived(Base):
        def step(self, x, y):
            scores = model(x).tanh() * 2 + 1
            recorder.record(scores.sum())
            loss = super().loss(scores, y)
            recorder.record(loss)
            penalty = scores.square().mean() * self.scale + scores.abs().sum()
            penalty.backward()
            return loss

    derived = Derived()

    def change():
        derived.scale = 3.0

    calls = [*batches[:9], change, *batches, *batches]
    return Program(derived.step, calls, watch=[model, recorder, derived])


@differential(hits=6)
def test_exception_raised_in_the_cut_statement_and_in_a_segment():
    recorder, model, optimizer, batches = setting()

    class Failing:
        def check(self, x):
            recorder.record(x.sum())
            if recorder.count in (9, 11):
                raise KeyError(recorder.count)

    failing = Failing()

    def step(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y) * 2 - 1
        failing.check(loss)
        extra = model(x).square().sum() * 0.1 + x.sum() + 1
        extra.backward()
        optimizer.step()
        return loss

    wrong = torch.randn(5, 3), batches[0][1]
    return Program(step, [*batches, wrong, *batches], watch=[model, optimizer, recorder])


@differential(hits=8)
def test_function_with_a_try_statement():
    recorder, model, optimizer, batches = setting()

    def step(x, y):
        try:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            if recorder.count == 8:
                raise ValueError("eight")
            recorder.record(loss)
            loss.backward()
            optimizer.step()
        except ValueError as error:
            recorder.record(8)
            loss = str(error)
        else:
            loss = loss * 2 + x.sum() - y.sum()
        finally:
            recorder.record(-1)
        return loss

    return Program(step, batches * 2, watch=[model, optimizer, recorder])


@differential(hits=8)
def test_recursive_function():
    recorder, model, _, batches = setting()
    converted = []

    def step(x, y, depth=2):
        scores = model(x).tanh() * 2 + depth
        recorder.record(scores.sum())
        if depth > 0:
            below = (converted[0] if converted else step)(x, y, depth - 1)
        else:
            below = 0.0
        return F.cross_entropy(scores, y) * 0.5 + below + scores.mean()

    def convert(step):
        function = torchjanus.function(step)
        converted.append(function)
        return function, function

    return Program(step, batches * 2, watch=[model, recorder], convert=convert)


@differential(hits=4)
def test_module_whose_forward_is_cut():
    recorder = Recorder()

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Linear(4, 6), nn.Linear(6, 3)

        def forward(self, x):
            hidden = torch.tanh(self.first(x)) * 2 + 1
            recorder.record(hidden.sum())
            return self.second(hidden).softmax(-1).log() - 1

    net = Net()
    seen = []

    def convert(step):
        return step, torchjanus.function(net)

    def step(x, y):
        loss = F.nll_loss(net(x), y)
        loss.backward()
        return loss

    def add_hook():
        net.register_forward_hook(lambda module, inputs, output: seen.append(len(seen)))

    batches = [(torch.randn(5, 4), torch.randint(0, 3, (5,))) for _ in range(12)]
    calls = [*batches, add_hook, *batches]
    return Program(step, calls, watch=[*net.parameters(), recorder, seen], convert=convert)


def test_cut_that_does_not_pay_is_given_up(simulated):
    """A graph copies the whole table where Python writes a row."""
    simulated(2, 1)
    recorder = Recorder()

    def build():
        table = torch.zeros(1000, 1000)

        def step(x):
            recorder.record(x.sum())
            y = x * 2 + 1
            table[3] = y
            table[5] = y * 2
            return y - table[5]

        return step, table

    (plain, expected), (step, table) = build(), build()
    converted = torchjanus.function(step)
    hits, since = 0, 0
    for _ in range(1000):  # contests of what other tests converted may have their turns first
        x = torch.randn(1000)
        assert torch.equal(plain(x), converted(x))
        assert torch.equal(expected, table)
        before, hits = hits, torchjanus.stats(converted)["hits"]
        since = since + 1 if hits == before else 0
        if hits > 0 and since == 30:
            break
    assert since == 30
    assert "ms in Python" in torchjanus.explain(converted)


def test_several_threads():
    recorder, model, _, batches = setting()
    lock = threading.Lock()

    @torchjanus.function
    def score(x, y):
        scores = model(x).tanh() * 2 + 1
        with lock:
            recorder.count += 1
        return F.cross_entropy(scores, y) * 0.5 + scores.mean()

    expected = [score.__wrapped__(*batch) for batch in batches]
    results = {}

    def work(number):
        results[number] = [score(*batch) for _ in range(6) for batch in batches]

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert recorder.count == len(batches) * (4 * 6 + 1)
    for number in range(4):
        for one, other in zip(results[number], expected * 6, strict=True):
            torch.testing.assert_close(one, other)


def test_report_names_the_cuts():
    recorder, model, _, batches = setting()

    @torchjanus.function
    def step(x, y):
        scores = model(x).tanh() * 2 + 1
        recorder.record(scores.sum())
        return F.cross_entropy(scores, y) * 0.5 + scores.mean()

    for batch in batches:
        step(*batch)
    stats = step.stats()
    assert stats["state"] == "cut" and stats["hits"] > 0
    text = step.explain()
    line = step.__wrapped__.__code__.co_firstlineno + 3
    assert f"cut at line {line}" in text and "[unknown_callable]" in text
    assert step.graph().count("graph @") == 2


def prices(snapshot):
    """What the statements at cuts took in Python, by line."""
    found = {cut["line"]: cut["in_python"] for cut in snapshot.get("cuts", ())}
    for part in snapshot.get("parts", ()):
        found |= prices(part)
    return found


def test_report_tells_what_cuts_cost():
    """The time of a cut statement is without that of the parts in its body, which have their own."""
    recorder = setting()[0]

    @torchjanus.function
    def step(x):
        x = x.tanh() * 2 + 1
        for _ in range(3):
            x = (x * 0.5 + 1).tanh() * 2
            time.sleep(0.002)
            recorder.record(x.sum())
        return (x.sin() + 1).exp()

    for _ in range(30):
        step(torch.ones(4))
    cuts = prices(step.snapshot())
    start = step.__wrapped__.__code__.co_firstlineno
    loop, sleep = cuts[start + 3], cuts[start + 5]
    assert loop["runs"] > 3 and sleep["runs"] > 10
    nap = sleep["milliseconds"] / sleep["runs"]
    assert nap > 2
    assert loop["milliseconds"] / loop["runs"] < 3 * nap
    text = step.explain()
    assert (
        f"in Python {loop['runs']} times, " in text and f"in Python {sleep['runs']} times, " in text
    )
    assert re.search(
        r"runs as a graph; 1 in the cache, ran \d+ of \d+ times, .+ each, .+ entry and", text
    )


def test_lambdas_of_statements_that_are_profiled_have_their_source(tmp_path):
    """What a loop was given by one that is being profiled is refused for no reason that stays."""
    stats = run_both(
        SETTING
        + """
    def solved(apply, x):
        for _ in range(4):
            x = x + apply(x).sin()
        return x

    shift = torch.ones(3)
    for step in range(12):
        scale = torch.randn(3)
        total = solved(lambda v: v * scale + shift, scale)
        metrics.update(total.sum())
    """,
        tmp_path,
    )
    assert "no_source" not in {each["code"] for one in stats for each in one["reasons"]}
