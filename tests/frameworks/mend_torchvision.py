"""Makes PyPI's torchvision importable beside torch's CPU build; run once after it was installed.

That wheel's library of operators is linked to CUDA and can't be loaded here, and its import then fails, as it gives
shapes of two operators that nobody declared. This declares the two; calling them still fails, but timm does not.
"""

import importlib.util
from pathlib import Path

AFTER = "import torchvision.extension  # noqa: F401\n"
DECLARED = """
if not torchvision.extension._has_ops():  # written by torchjanus' tests/frameworks/mend_torchvision.py
    for _name in ("nms", "qnms"):
        torch.library.define(f"torchvision::{_name}", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
"""


def main() -> None:
    spec = importlib.util.find_spec("torchvision")
    assert spec is not None and spec.origin is not None, "torchvision is not installed"
    file = Path(spec.origin).with_name("_meta_registrations.py")
    text = file.read_text()
    if DECLARED not in text:
        assert AFTER in text, f"{file} is not as expected"
        file.write_text(text.replace(AFTER, AFTER + DECLARED, 1))


if __name__ == "__main__":
    main()
