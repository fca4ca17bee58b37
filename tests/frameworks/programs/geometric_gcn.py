"""A graph convolutional network that classifies the nodes of one graph, in the manner of torch-geometric's example."""

import sys

import torch.nn.functional as F
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv
from torch_geometric.utils import to_undirected

import torch

EPOCHS = int(sys.argv[1]) if len(sys.argv) > 1 else 300

torch.manual_seed(0)
nodes, classes = 400, 4
y = torch.randint(0, classes, (nodes,))
source, target = torch.randint(0, nodes, (2, 8000))
kept = (y[source] == y[target]) | (torch.rand(8000) < 0.1)
x = F.one_hot(y, classes).float() @ torch.randn(classes, 32) + 2 * torch.randn(nodes, 32)
data = Data(x=x, edge_index=to_undirected(torch.stack([source[kept], target[kept]])), y=y)
data.train_mask = torch.rand(nodes) < 0.2
data.test_mask = ~data.train_mask


class GCN(torch.nn.Module):
    def __init__(self, inputs, hidden, outputs):
        super().__init__()
        self.conv1 = GCNConv(inputs, hidden)
        self.conv2 = GCNConv(hidden, outputs)

    def forward(self, x, edge_index):
        x = F.dropout(x, p=0.5, training=self.training)
        x = self.conv1(x, edge_index).relu()
        x = F.dropout(x, p=0.5, training=self.training)
        return self.conv2(x, edge_index)


model = GCN(32, 32, classes)
optimizer = torch.optim.Adam(
    [
        dict(params=model.conv1.parameters(), weight_decay=5e-4),
        dict(params=model.conv2.parameters(), weight_decay=0),
    ],
    lr=0.01,
)


def train():
    model.train()
    optimizer.zero_grad()
    out = model(data.x, data.edge_index)
    loss = F.cross_entropy(out[data.train_mask], data.y[data.train_mask])
    loss.backward()
    optimizer.step()
    return float(loss)


@torch.no_grad()
def test():
    model.eval()
    pred = model(data.x, data.edge_index).argmax(dim=-1)
    return [
        int((pred[mask] == data.y[mask]).sum()) / int(mask.sum())
        for mask in (data.train_mask, data.test_mask)
    ]


for epoch in range(1, EPOCHS + 1):
    loss = train()
    train_acc, test_acc = test()
    if epoch % 20 == 0:
        print(f"Epoch: {epoch:03d}, Loss: {loss!r}, Train: {train_acc!r}, Test: {test_acc!r}")
print("parameters", sum(p.detach().double().abs().sum().item() for p in model.parameters()))
