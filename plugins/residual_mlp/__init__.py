"""residual_mlp: y = relu(h W2 + b2 + x) with h = relu(x W1 + b1), rounded once. See docs/workloads/residual_mlp.md."""
