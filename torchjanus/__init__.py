"""Runs ordinary imperative PyTorch programs as speculative graphs, without changing what they do.

    @torchjanus.function                 # one function: a training step, a model, a loss
    def train_step(x, y): ...

    model = torchjanus.function(model)   # one module

`explain(f)` says what became a graph, what was assumed, and what stayed imperative and why.
"""

import warnings
from typing import TYPE_CHECKING

import torch  # noqa: F401  (the compiled part needs torch's libraries to be loaded)

from . import clock  # noqa: F401  (first: from here on, a program's start is our part)

# isort: split
from . import library, meta
from .meta import stop_fuse, stop_grad

if TYPE_CHECKING or library.is_there():
    __path__.append(str(library.folder()))  # of _core
    from . import (
        attention,  # noqa: F401  (what graphs run for attention with dropout)
        behind_pending,  # noqa: F401
        bindings,  # noqa: F401  (what the front end asks of torch's bindings)
        communication,  # noqa: F401  (what the front end follows for collectives)
        containers,  # noqa: F401  (what graphs give goes through these)
        contexts,  # noqa: F401  (what graphs run for contextlib.ExitStack)
        draws,  # noqa: F401  (what graphs need to know of torch)
        higher_order,  # noqa: F401
        inference,  # noqa: F401
        kernel_names,  # noqa: F401
        leaves,  # noqa: F401
        module_hooks,  # noqa: F401  (what graphs run for backward hooks of modules)
        printing,  # noqa: F401  (what graphs run for prints to writers of the program)
        recurrent,  # noqa: F401  (what graphs run for torch.gru and its like)
        views,  # noqa: F401
    )
    from ._core import Function, Region
    from .convert import explain, function, graph, report, stats
    from .inline import code
    from .lazy_execution import fetch, lazy, synchronize
    from .notebook import (  # %load_ext torchjanus
        load_ipython_extension,
        unload_ipython_extension,
    )
    from .settings import options
    from .timeline import trace
else:
    from .imperative import (  # noqa: F401
        Function,
        Region,
        explain,
        fetch,
        function,
        graph,
        lazy,
        load_ipython_extension,
        options,
        report,
        stats,
        synchronize,
        trace,
        unload_ipython_extension,
    )
    from .inline import code

    warnings.warn(library.sentence(), RuntimeWarning, stacklevel=2)

__version__ = "0.1.0"

__all__ = [
    "Function",
    "Region",
    "code",
    "explain",
    "fetch",
    "function",
    "graph",
    "lazy",
    "meta",
    "options",
    "report",
    "stats",
    "stop_fuse",
    "stop_grad",
    "synchronize",
    "trace",
]
