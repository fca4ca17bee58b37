"""Differential programs: models as people write them, trained for a few steps by one converted function."""

import copy

import gan
import pytest
import torch.nn.functional as F
from differential import Program, differential

import torch
from torch import nn

STEPS = 7


def classification(count=STEPS, batch=6, features=8, classes=4):
    return [
        (torch.randn(batch, features), torch.randint(0, classes, (batch,))) for _ in range(count)
    ]


def training_step(model, optimizer, criterion):
    def step(x, y):
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step


def trained(model, calls, criterion=F.cross_entropy, **options):
    optimizer = torch.optim.SGD(model.parameters(), **{"lr": 0.1, **options})
    return Program(training_step(model, optimizer, criterion), calls, watch=[model, optimizer])


@differential(hits=4, graphs=1)
def test_logistic_regression():
    return trained(nn.Linear(8, 4), classification())


@differential(hits=4, graphs=1)
def test_logistic_regression_by_hand():
    w = torch.zeros(8, 4, requires_grad=True)
    b = torch.zeros(4, requires_grad=True)

    def step(x, y):
        loss = F.nll_loss(F.log_softmax(x @ w + b, dim=1), y)
        loss.backward()
        with torch.no_grad():
            for p in (w, b):
                p -= 0.1 * p.grad
                p.grad.zero_()
        return loss.item()

    return Program(step, classification(), watch=[w, b])


@differential(hits=4, graphs=1)
def test_mlp_sequential():
    model = nn.Sequential(
        nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 4)
    )
    return trained(model, classification(), momentum=0.9)


class ResidualBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first = nn.Linear(width, width)
        self.second = nn.Linear(width, width)

    def forward(self, x):
        return x + self.second(F.relu(self.first(x)))


class ResidualNet(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.blocks = nn.ModuleList(ResidualBlock(8) for _ in range(depth))
        self.head = nn.Linear(8, 4)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x)


@differential(hits=4, graphs=1)
def test_residual_blocks():
    return trained(ResidualNet(5), classification(), momentum=0.9, nesterov=True)


class SmallLeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 4, 5)
        self.conv2 = nn.Conv2d(4, 8, 5)
        self.fc1 = nn.Linear(8 * 4 * 4, 16)
        self.fc2 = nn.Linear(16, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = x.view(x.size(0), -1)
        return self.fc2(F.relu(self.fc1(x)))


def images(count=STEPS, batch=3, channels=1, size=28):
    return [
        (torch.randn(batch, channels, size, size), torch.randint(0, 10, (batch,)))
        for _ in range(count)
    ]


@differential(hits=4, graphs=1)
def test_lenet():
    return trained(SmallLeNet(), images(), momentum=0.9)


class BatchNormNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.MaxPool2d(2),
            nn.Conv2d(8, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(inplace=True),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        )  # fmt: skip
        self.classifier = nn.Linear(8, 10)

    def forward(self, x):
        return self.classifier(self.features(x))


@differential(hits=4, graphs=1)
def test_cnn_with_batch_norm():
    return trained(BatchNormNet(), images(channels=3, size=8), momentum=0.9, weight_decay=1e-4)


@differential(hits=4, graphs=1)
def test_dropout_masks_are_those_of_eager():
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(0.4), nn.Linear(16, 4))
    return trained(model, classification())


@differential(hits=4, graphs=1)
def test_dropout2d_and_alpha():
    model = nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.Dropout2d(0.3), nn.Flatten(), nn.Linear(4 * 26 * 26, 10)
    )
    return trained(model, images())


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(8, 16)
        self.mean = nn.Linear(16, 3)
        self.log_variance = nn.Linear(16, 3)
        self.decoder = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 8), nn.Sigmoid())

    def reparameterize(self, mean, log_variance):
        deviation = torch.exp(0.5 * log_variance)
        return mean + torch.randn_like(deviation) * deviation

    def forward(self, x):
        hidden = F.relu(self.encoder(x))
        mean, log_variance = self.mean(hidden), self.log_variance(hidden)
        return self.decoder(self.reparameterize(mean, log_variance)), mean, log_variance


@differential(hits=4, graphs=1)
def test_variational_autoencoder():
    model = Autoencoder()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

    def step(x):
        optimizer.zero_grad()
        output, mean, log_variance = model(x)
        reconstruction = F.binary_cross_entropy(output, x, reduction="sum")
        divergence = -0.5 * torch.sum(1 + log_variance - mean.pow(2) - log_variance.exp())
        loss = reconstruction + divergence
        loss.backward()
        optimizer.step()
        return loss.item(), reconstruction.detach()

    return Program(step, [(torch.rand(5, 8),) for _ in range(STEPS)], watch=[model, optimizer])


@differential(hits=4, graphs=1)
def test_generative_adversarial_network():
    generator = nn.Sequential(nn.Linear(4, 16), nn.LeakyReLU(0.2), nn.Linear(16, 8), nn.Tanh())
    critic = nn.Sequential(nn.Linear(8, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
    optimizers = gan.make_optimizers([generator, critic])

    def step(real):
        noise = torch.randn(len(real), 4)
        losses = gan.train_step([generator, critic], optimizers, real, noise)
        return [loss.item() for loss in losses]

    calls = [(torch.randn(6, 8),) for _ in range(STEPS)]
    return Program(step, calls, watch=[generator, critic, *optimizers])


@differential(hits=4, graphs=1)
def test_linear_regression_with_huber_loss():
    return trained(
        nn.Linear(8, 1),
        [(torch.randn(5, 8), torch.randn(5, 1)) for _ in range(STEPS)],
        criterion=nn.SmoothL1Loss(),
    )


@differential(hits=4, graphs=1)
def test_embedding_bag_of_words():
    class Bag(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(20, 6)
            self.out = nn.Linear(6, 4)

        def forward(self, tokens):
            return self.out(self.embedding(tokens).mean(dim=1))

    calls = [(torch.randint(0, 20, (5, 7)), torch.randint(0, 4, (5,))) for _ in range(STEPS)]
    return trained(Bag(), calls)


@differential(hits=4, graphs=1)
def test_layer_norm_and_gelu():
    model = nn.Sequential(
        nn.LayerNorm(8), nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4)
    )
    return trained(model, classification())


@differential(hits=4, graphs=1)
def test_recurrent_cell_unrolled_over_a_sequence():
    class Recurrent(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell = nn.Linear(8 + 6, 6)
            self.out = nn.Linear(6, 4)

        def forward(self, sequence):
            hidden = torch.zeros(sequence.size(1), 6)
            for x in sequence:
                hidden = torch.tanh(self.cell(torch.cat([x, hidden], dim=1)))
            return self.out(hidden)

    calls = [(torch.randn(5, 3, 8), torch.randint(0, 4, (3,))) for _ in range(STEPS)]
    return trained(Recurrent(), calls)


@differential(hits=4, graphs=1)
def test_self_attention():
    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.project = nn.Linear(8, 24)
            self.out = nn.Linear(8, 4)

        def forward(self, x):
            batch, length, width = x.shape
            parts = self.project(x).view(batch, length, 3, 2, width // 2)
            q, k, v = parts.permute(2, 0, 3, 1, 4)
            scores = (q @ k.transpose(-2, -1)) / (width // 2) ** 0.5
            mixed = torch.softmax(scores, dim=-1) @ v
            return self.out(mixed.transpose(1, 2).reshape(batch, length, width).mean(1))

    calls = [(torch.randn(2, 5, 8), torch.randint(0, 4, (2,))) for _ in range(STEPS)]
    return trained(Attention(), calls)


@differential(hits=4, graphs=1)
def test_weight_tying():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(10, 6)
            self.out = nn.Linear(6, 10, bias=False)
            self.out.weight = self.embedding.weight

        def forward(self, tokens):
            return self.out(torch.tanh(self.embedding(tokens)))

    calls = [(torch.randint(0, 10, (7,)), torch.randint(0, 10, (7,))) for _ in range(STEPS)]
    return trained(Tied(), calls)


@differential(hits=4, graphs=1)
def test_module_is_wrapped_and_backward_is_called_outside():
    import torchjanus

    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def convert(step):
        torchjanus.function(model)
        return step, model

    calls = classification()
    step = training_step(model, optimizer, F.cross_entropy)
    return Program(step, calls, watch=[model, optimizer], convert=convert)


@differential(hits=4, graphs=1)
def test_wrapped_module_double_backward_outside():
    import torchjanus

    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))

    def step(x):
        x = x.clone().requires_grad_()
        (gradient,) = torch.autograd.grad(model(x).sum(), x, create_graph=True)
        penalty = (gradient.norm(2, dim=1) - 1).pow(2).mean()
        model.zero_grad()
        penalty.backward()
        return penalty.detach()

    def convert(step):
        torchjanus.function(model)
        return step, model

    return Program(
        step, [(torch.randn(5, 4),) for _ in range(STEPS)], watch=[model], convert=convert
    )


@differential(hits=4)
def test_evaluation_after_training():
    model = BatchNormNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(x, y, train):
        if train:
            model.train()
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            return loss.item()
        model.eval()
        with torch.no_grad():
            return (model(x).argmax(1) == y).float().mean().item()

    batches = images(count=12, channels=3, size=8)
    calls = [(*batch, index % 3 != 2) for index, batch in enumerate(batches)]
    return Program(step, calls, watch=[optimizer])


LOSSES = {
    "mse": (nn.MSELoss(), lambda: torch.randn(5, 4)),
    "l1": (nn.L1Loss(), lambda: torch.randn(5, 4)),
    "huber": (nn.HuberLoss(delta=0.7), lambda: torch.randn(5, 4)),
    "smooth l1": (nn.SmoothL1Loss(beta=0.5), lambda: torch.randn(5, 4)),
    "cross entropy": (nn.CrossEntropyLoss(), lambda: torch.randint(0, 4, (5,))),
    "label smoothing": (
        nn.CrossEntropyLoss(label_smoothing=0.1),
        lambda: torch.randint(0, 4, (5,)),
    ),
    "class probabilities": (nn.CrossEntropyLoss(), lambda: torch.rand(5, 4).softmax(1)),
    "bce with logits": (nn.BCEWithLogitsLoss(), lambda: torch.rand(5, 4)),
    "kl divergence": (nn.KLDivLoss(reduction="batchmean"), lambda: torch.rand(5, 4)),
    "poisson": (nn.PoissonNLLLoss(), lambda: torch.rand(5, 4)),
    "soft margin": (nn.SoftMarginLoss(), lambda: torch.randint(0, 2, (5, 4)).double() * 2 - 1),
    "multi margin": (nn.MultiMarginLoss(), lambda: torch.randint(0, 4, (5,))),
}


@pytest.mark.parametrize("name", LOSSES)
@differential(hits=4)
def test_losses(name):
    criterion, target = LOSSES[name]
    return trained(
        nn.Linear(8, 4), [(torch.randn(5, 8), target()) for _ in range(STEPS)], criterion
    )


ACTIVATIONS = [
    nn.ReLU(), nn.LeakyReLU(0.1), nn.ELU(), nn.SELU(), nn.GELU(), nn.GELU("tanh"), nn.SiLU(), nn.Mish(),
    nn.Softplus(), nn.Softsign(), nn.Sigmoid(), nn.Tanh(), nn.Hardtanh(), nn.Hardswish(), nn.ReLU6(),
    nn.LogSigmoid(), nn.Tanhshrink(), nn.Softmax(dim=1), nn.LogSoftmax(dim=1), nn.PReLU(), nn.GLU(),
]  # fmt: skip


@pytest.mark.parametrize("activation", ACTIVATIONS, ids=lambda module: str(module).lower())
@differential(hits=4)
def test_activations(activation):
    width = 4 if isinstance(activation, nn.GLU) else 8
    layer = copy.deepcopy(activation).to(torch.get_default_dtype())
    model = nn.Sequential(nn.Linear(8, 8), layer, nn.Linear(width, 4))
    return trained(model, classification())
