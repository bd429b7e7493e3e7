"""SSD-FL in forty lines of PyTorch: two groups of devices, one slow link between them, no server.

Everything is spelt out here on purpose; the library's fast version is `ssdfl.engine.local`.
"""

import torch
from sklearn.datasets import load_digits
from torch.nn.functional import cross_entropy

torch.manual_seed(0)
images, labels = (torch.tensor(array) for array in load_digits(return_X_y=True))
images = images.float() / 16
test, train = slice(0, 400), slice(400, None)

# a barbell: two triangles and a bridge
links = [(0, 1), (0, 2), (1, 2), (2, 3), (3, 4), (3, 5), (4, 5)]
clusters = [{0, 1, 2}, {3, 4, 5}]
N, tau_a, tau_r, eta = 6, 5, 1, 1.0


def metropolis(chosen: list[tuple[int, int]]) -> torch.Tensor:
    """Weights 1 / (1 + the larger degree) on links, the rest on the diagonal."""
    degree = [sum(i in link for link in chosen) for i in range(N)]
    W = torch.zeros(N, N)
    for i, j in chosen:
        W[i, j] = W[j, i] = 1 / (1 + max(degree[i], degree[j]))
    return W + torch.diag(1 - W.sum(1))


A = metropolis(links)
A_tilde = metropolis([link for link in links if any(set(link) <= cluster for cluster in clusters)])

theta = torch.zeros(N, 64, 10)  # logistic regression, one model per device
shards = [torch.isin(labels[train], torch.tensor([i, (i + 1) % 6, 6 + i % 4])) for i in range(N)]

for cycle in range(20):
    for _ in range(tau_a):  # intra-cluster regime: everyone trains, clusters mix
        gradients = []
        for i in range(N):
            leaf = theta[i].clone().requires_grad_()
            batch = shards[i].nonzero().squeeze()[torch.randint(int(shards[i].sum()), (32,))]
            cross_entropy(images[train][batch] @ leaf, labels[train][batch]).backward()
            gradients.append(leaf.grad)
        theta = torch.einsum("ij,jab->iab", A_tilde, theta) - eta * torch.stack(gradients)  # type: ignore[arg-type]
    for _ in range(tau_r):  # inter-cluster regime: the whole network mixes
        theta = torch.einsum("ij,jab->iab", A, theta)
    accuracy = [(images[test] @ model).argmax(1).eq(labels[test]).float().mean() for model in theta]
    mean, worst = sum(accuracy) / N, min(accuracy)
    print(f"cycle {cycle + 1:2d}: mean accuracy {mean:.3f}, worst device {worst:.3f}")
