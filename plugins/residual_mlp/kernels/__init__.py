"""Kernels of residual_mlp in the CuTe DSL. `configs` and `policy` need no compiler; every other module imports cutlass."""
