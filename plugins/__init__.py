"""Built-in workloads and engines, one folder per workload. Installed as mkframe_plugins; they use the same door as everybody."""
