"""The kinds of job that the control plane plans, one a file: each file of this folder registers its own."""

from importlib import import_module
from pkgutil import iter_modules

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
