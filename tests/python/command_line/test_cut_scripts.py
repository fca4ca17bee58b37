"""Scripts of which some statements can't be converted: they do what they do under python."""

import pytest
from scripts import hits, run_both

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


def test_local_functions_of_a_code_that_was_cut(tmp_path):
    """The second is another function of the code that the first one had before."""
    stats = run_both(
        SETTING
        + """
    def train(f):
        for i in range(30):
            r = f(torch.ones(3, 4) * i)
            print(i, f"{float(r.detach()):.6f}")

    def begin():
        m = nn.Linear(4, 2)
        def f(x): l = m(x).pow(2).sum(); l.backward(); return l
        train(f)

    begin()
    begin()
    """,
        tmp_path,
    )
    assert hits(stats)
    codes = [reason["code"] for each in stats for reason in each["reasons"]]
    assert "internal_error" not in codes, stats


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
