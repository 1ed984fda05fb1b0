"""mkframe: declarative GPU benchmarks whose reports can be checked without a GPU."""

__version__ = "0.1.0"
