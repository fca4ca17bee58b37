"""Fashion-MNIST as tensors, read directly from the gzip IDX files of Debian's dataset-fashion-mnist."""

import gzip
import struct
from pathlib import Path

import numpy

import torch

DEFAULT_FOLDER = Path("/usr/share/datasets/fashion-mnist")


def read_idx(path: Path) -> torch.Tensor:
    """The array of unsigned bytes in a gzip IDX file."""
    with gzip.open(path, "rb") as file:
        data = file.read()
    zeros, kind, rank = struct.unpack(">HBB", data[:4])
    if zeros != 0 or kind != 8:
        raise ValueError(f"{path}: expected an IDX file of unsigned bytes, found type {kind:#x}")
    shape = struct.unpack(f">{rank}I", data[4 : 4 + 4 * rank])
    array = numpy.frombuffer(data, dtype=numpy.uint8, offset=4 + 4 * rank)
    return torch.from_numpy(array.reshape(shape).copy())


def load(folder: Path, part: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Images (float32 [N, 1, 28, 28], mean 0 and deviation 1 over the set) and labels (int64 [N]).

    `part` is "train" or "t10k". Raises FileNotFoundError, with what to install, if the files are missing.
    """
    images_path = Path(folder) / f"{part}-images-idx3-ubyte.gz"
    labels_path = Path(folder) / f"{part}-labels-idx1-ubyte.gz"
    for path in (images_path, labels_path):
        if not path.exists():
            raise FileNotFoundError(
                f"{path} does not exist: install Debian's package dataset-fashion-mnist, "
                "or give the folder of the IDX files with --data"
            )
    images = read_idx(images_path).float().div_(255).sub_(0.286).div_(0.353).unsqueeze_(1)
    return images, read_idx(labels_path).long()
