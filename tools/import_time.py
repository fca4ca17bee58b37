"""What `import torchjanus` takes beyond `import torch`, in milliseconds: medians of new processes.

python tools/import_time.py [PROCESSES]
"""

import os
import statistics
import subprocess
import sys

CODE = """
import time, torch
processor, wall = time.process_time(), time.perf_counter()
import torchjanus
print(1e3 * (time.process_time() - processor), 1e3 * (time.perf_counter() - wall))
"""


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    took = []
    for _ in range(count):
        told = subprocess.run(
            [sys.executable, "-c", CODE], check=True, capture_output=True, text=True
        )
        took.append([float(each) for each in told.stdout.split()])
    for name, each in zip(("processor", "wall"), zip(*took, strict=True), strict=True):
        print(f"{name}: {statistics.median(each):.0f} ms ({min(each):.0f} to {max(each):.0f})")
    print(f"load: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
