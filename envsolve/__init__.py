"""envsolve: CUDA stacks that run on the GPU and the driver you have.

    import envsolve

    print(envsolve.solve("pytorch>=2.5", gpus="RTX 3090", driver="580.65.06").text)

The functions are those of :mod:`envsolve.api`, which is loaded when the first of them is used.
"""

__version__ = "0.1.0"

__all__ = ["EnvsolveError", "__version__", "detect", "doctor", "explain", "lock", "solve", "status", "validate"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envsolve.api import detect, doctor, explain, lock, solve, status, validate
    from envsolve.errors import EnvsolveError
else:
    _MODULES = dict.fromkeys(("detect", "doctor", "explain", "lock", "solve", "status", "validate"), "envsolve.api")
    _MODULES["EnvsolveError"] = "envsolve.errors"

    def __getattr__(name):
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
        from importlib import import_module

        value = globals()[name] = getattr(import_module(_MODULES[name]), name)
        return value

    def __dir__():
        return sorted({*globals(), *__all__})
