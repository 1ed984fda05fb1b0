"""The CUDA driver API, as this package uses it."""

from mkframe.cuda_driver import check as check
from mkframe.cuda_driver import driver as driver
