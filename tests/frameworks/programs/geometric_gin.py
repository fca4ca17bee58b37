"""Graph classification: GIN layers over batches of graphs of various sizes, pooled by sums."""

import sys

import torch.nn.functional as F
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GINConv, global_add_pool
from torch_geometric.utils import to_undirected

import torch
from torch import nn

EPOCHS = int(sys.argv[1]) if len(sys.argv) > 1 else 10

torch.manual_seed(4)


def ring_or_star() -> Data:
    """A graph of 8 to 20 nodes: a ring or a star, with some random edges."""
    nodes, kind = int(torch.randint(8, 21, ())), int(torch.randint(0, 2, ()))
    index = torch.arange(nodes)
    edges = torch.stack([index, (index + 1) % nodes if kind else torch.zeros_like(index)])
    noise = torch.randint(0, nodes, (2, 4))
    return Data(
        x=torch.randn(nodes, 8),
        edge_index=to_undirected(torch.cat([edges, noise], 1)),
        y=torch.tensor([kind]),
    )


graphs = [ring_or_star() for _ in range(600)]
training, testing = (
    DataLoader(graphs[:500], batch_size=20, shuffle=True),
    DataLoader(graphs[500:], batch_size=50),
)


class GIN(nn.Module):
    def __init__(self, hidden: int = 32) -> None:
        super().__init__()
        self.convs = nn.ModuleList()
        for inputs in (8, hidden, hidden):
            layers = (
                nn.Linear(inputs, hidden, bias=False),  # a batch norm takes a bias away
                nn.BatchNorm1d(hidden),
                nn.ReLU(),
                nn.Linear(hidden, hidden),
            )
            self.convs.append(GINConv(nn.Sequential(*layers)))
        self.head = nn.Linear(hidden, 2)

    def forward(self, x, edge_index, batch):
        for conv in self.convs:
            x = conv(x, edge_index).relu()
        return self.head(F.dropout(global_add_pool(x, batch), 0.2, self.training))


model = GIN()
optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
for epoch in range(EPOCHS):
    model.train()
    total = 0.0
    for data in training:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(data.x, data.edge_index, data.batch), data.y)
        loss.backward()
        optimizer.step()
        total += float(loss) * data.num_graphs
    model.eval()
    right = 0
    with torch.no_grad():
        for data in testing:
            right += int((model(data.x, data.edge_index, data.batch).argmax(1) == data.y).sum())
    print(epoch, total / 500, right / 100)
print("parameters", sum(p.detach().double().abs().sum().item() for p in model.parameters()))
