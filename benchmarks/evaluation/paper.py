"""What is compared with: the figures of the papers' evaluations, by the name of a program here.

JANUS: Jeong et al., "JANUS: Fast and Flexible Deep Learning via Symbolic Graph Execution of Imperative Programs",
2019, against TensorFlow's eager mode. Jittor: Hu et al., "Jittor: a novel deep learning framework with meta-operators
and unified graph execution", 2020, against PyTorch. Terra: Kim et al., "Terra: Imperative-Symbolic Co-Execution of
Imperative Deep Learning Programs", 2021, against TensorFlow's eager mode. All of them measured on GPUs.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Model:
    title: str
    faster: float  # than eager, in the paper; of scale factors: than a single device's throughput by their number
    here: str  # what is measured


#: The eleven.
JANUS: Mapping[str, Model] = {
    "lenet": Model("LeNet", 3.25, "batch 50, 28×28"),
    "resnet50": Model("ResNet-50", 1.06, "batch 4, 112×112"),
    "inception_v3": Model("Inception-v3", 1.10, "batch 2, 107×107"),
    "lstm": Model("LSTM", 8.03, "2 layers of 200, batch 20, 20 words"),
    "sampled_softmax": Model("LM", 2.11, "a layer of 512, 500 words sampled, batch 20, 20 words"),
    "tree_rnn_25": Model("TreeRNN", 47.6, "width 100, 25 trees"),
    "tree_lstm_25": Model("TreeLSTM", 18.4, "width 100, 25 trees"),
    "a3c": Model("A3C", 5.13, "the update, 5 to 20 steps"),
    "ppo": Model("PPO", 2.18, "the update, 64 rows"),
    "gan": Model("AN", 2.61, "batch 128, 28×28"),
    "pix2pix": Model("pix2pix", 2.15, "batch 8, 64×64"),
}

#: Throughput of several devices over that of as many single ones; programs by their names in benchmarks/distributed.py.
JANUS_SCALE_FACTORS: Mapping[str, Model] = {
    "resnet50": Model("ResNet-50", 0.77, "batch 8, 64×64"),
    "inception_v3": Model("Inception-v3", 0.81, "batch 2, 107×107"),
    "language_model": Model("LM", 0.18, "2 layers of 200, batch 20, 20 words"),
}

JITTOR_BACKBONES: Mapping[str, str] = {
    "alexnet": "AlexNet",
    "vgg11": "VGG-11",
    "resnet50": "ResNet-50",
    "resnet152": "ResNet-152",
    "wide_resnet50_2": "Wide ResNet-50-2",
    "wide_resnet101_2": "Wide ResNet-101-2",
    "squeezenet1_1": "SqueezeNet 1.1",
    "resnext50_32x4d": "ResNeXt-50 32×4d",
    "resnext101_32x8d": "ResNeXt-101 32×8d",
    "res2net50": "Res2Net-50",
}
JITTOR_FASTER = (1.26, 1.13)  # means in inference, of small batches and of large ones

JITTOR_GANS: Mapping[str, Model] = {
    "wgan_gp": Model("WGAN-GP", 2.9, "32×32, batch 32"),
    "dcgan": Model("DCGAN", 2.1, "32×32, batch 32"),
    "lsgan": Model("LSGAN", 2.0, "32×32, batch 32"),
    "cyclegan": Model("CycleGAN", 1.4, "32×32, batch 2"),
}

#: Steps of a residual block: one by one, and as they are executed.
JITTOR_FUSION = (7, 4)

#: Terra's ten programs, co-executed, against eager: the least and the most. Lazily, three of them: 1.13, 0.94 and 1.34,
#: where co-execution has 1.25, 1.23 and 1.56.
TERRA_FASTER = (1.06, 1.73)
