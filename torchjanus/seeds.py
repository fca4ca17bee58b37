"""What a graph that seeds torch's generator leaves to be done behind its run."""

import torch


def seed_other_devices(seed: int) -> None:
    """Seeds as `torch.manual_seed` does, but for the CPU's generator: the run has drawn from that."""
    generator = torch.default_generator
    state = generator.get_state()
    torch.manual_seed(seed)
    generator.set_state(state)
