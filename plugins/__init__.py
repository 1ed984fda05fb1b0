"""Built-in workloads and engines. They use `mkframe.plugin` like any third party's file, and nothing else of mkframe."""
