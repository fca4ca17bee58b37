"""Made pictures: discs and rectangles of random place, size and colour."""

import torch


def draw(count, size, channels=1, seed=0):
    """Pictures in [-1, 1] and the number of each one's shape: 0 disc, 1 rectangle."""
    random = torch.Generator().manual_seed(seed)
    rows = torch.arange(size).view(1, size, 1)
    columns = torch.arange(size).view(1, 1, size)
    middle = (0.3 + 0.4 * torch.rand(count, 2, 1, 1, generator=random)) * size
    extent = (0.1 + 0.2 * torch.rand(count, 2, 1, 1, generator=random)) * size
    kind = torch.randint(0, 2, (count,), generator=random)
    down, across = (rows - middle[:, 0]).abs(), (columns - middle[:, 1]).abs()
    disc = down**2 + across**2 < extent[:, 0] ** 2
    rectangle = (down < extent[:, 0]) & (across < extent[:, 1])
    inside = torch.where(kind.view(-1, 1, 1) == 0, disc, rectangle)
    colour = 0.2 + 0.8 * torch.rand(count, channels, 1, 1, generator=random)
    return inside.unsqueeze(1) * colour * 2 - 1, kind


def edges(pictures):
    """The outlines: 1 where a picture changes from one pixel to the next, -1 elsewhere."""
    grey = pictures.mean(1, keepdim=True)
    result = torch.zeros_like(grey)
    result[:, :, 1:] += (grey[:, :, 1:] - grey[:, :, :-1]).abs()
    result[:, :, :, 1:] += (grey[:, :, :, 1:] - grey[:, :, :, :-1]).abs()
    return (result > 0.05).float() * 2 - 1
