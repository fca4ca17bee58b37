"""Runs the operators' tests once for each instruction set that this processor has beside its own: our code, ATen's
and oneDNN's are narrowed together. What is there itself is the ordinary run of the tests. Arguments are pytest's."""

import os
import subprocess
import sys
from pathlib import Path

TESTS = [
    "operators/test_extremes.py",
    "operators/test_units_in_the_last_place.py",
    "torch_library/test_optimizer_bits.py",
    "operators/test_pooling.py",
    "kernels/test_half_precision.py",
]
# Name, what /proc/cpuinfo calls the least that it takes, what would be wider, and the variables.
SETS = [
    ("x86-64-v2", "sse4_2", "avx2", ("baseline", "default", "SSE41")),
    ("AVX2", "avx2", "avx512bw", ("avx2", "avx2", "AVX2")),
    ("AVX-512", "avx512bw", "avx512_bf16", ("avx512", "avx512", "AVX512_CORE")),
]
VARIABLES = ("TORCHJANUS_INSTRUCTIONS", "ATEN_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA")


def flags_of_processor() -> set[str]:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "flags":
            return set(value.split())
    return set()


def main() -> int:
    flags = flags_of_processor()
    failed = []
    for name, least, wider, values in SETS:
        if least not in flags or wider not in flags:
            print(f"--- {name}: not narrower than this processor, or not there", flush=True)
            continue
        print(f"--- {name}", flush=True)
        environment = {**os.environ, **dict(zip(VARIABLES, values, strict=True))}
        folder = Path(__file__).parent.parent / "tests" / "python"
        tests = [str(folder / each) for each in TESTS]
        command = [sys.executable, "-m", "pytest", "-q", *sys.argv[1:], *tests]
        if subprocess.run(command, env=environment).returncode != 0:
            failed.append(name)
    if failed:
        print("failed:", ", ".join(failed))
    return len(failed)


if __name__ == "__main__":
    sys.exit(main())
