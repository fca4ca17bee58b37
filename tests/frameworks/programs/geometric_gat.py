"""Graph attention over one graph: two layers with several heads, ELU and dropout."""

import sys

import torch.nn.functional as F
from torch_geometric.nn import GATConv
from torch_geometric.utils import add_self_loops, to_undirected

import torch

EPOCHS = int(sys.argv[1]) if len(sys.argv) > 1 else 300

torch.manual_seed(2)
nodes, classes = 250, 3
labels = torch.randint(0, classes, (nodes,))
edges = torch.randint(0, nodes, (2, 4000))
edges = edges[:, (labels[edges[0]] == labels[edges[1]]) | (torch.rand(4000) < 0.15)]
edges, _ = add_self_loops(to_undirected(edges), num_nodes=nodes)
features = F.one_hot(labels, classes).float() @ torch.randn(classes, 24) + 1.5 * torch.randn(
    nodes, 24
)
training = torch.rand(nodes) < 0.3


class GAT(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = GATConv(24, 8, heads=4, dropout=0.3)
        self.second = GATConv(32, classes, heads=1, concat=False, dropout=0.3)

    def forward(self, x, edge_index):
        x = F.dropout(x, 0.3, self.training)
        x = F.elu(self.first(x, edge_index))
        x = F.dropout(x, 0.3, self.training)
        return self.second(x, edge_index)


model = GAT()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
for epoch in range(EPOCHS):
    model.train()
    optimizer.zero_grad()
    scores = model(features, edges)
    loss = F.cross_entropy(scores[training], labels[training])
    loss.backward()
    optimizer.step()
    if epoch % 20 == 19:
        model.eval()
        with torch.no_grad():
            predicted = model(features, edges).argmax(1)
        accuracy = (predicted == labels)[~training].float().mean()
        print(epoch, loss.item(), accuracy.item())
print("parameters", sum(p.detach().double().abs().sum().item() for p in model.parameters()))
