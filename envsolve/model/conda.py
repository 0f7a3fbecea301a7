"""Packages of conda channels, as a channel lists them and as a lock contains them."""

import re
from typing import NamedTuple

_NAME = re.compile(r"\s*([^\s<>=!~\[|,]+)")
"""The name in a dependency. Some old records write ``numpy>=1.11`` without a space."""


class VirtualPackage(NamedTuple):
    """A property of a machine that conda packages may require: ``__cuda 12.4``, ``__archspec 1 x86_64``.

    https://docs.conda.io/projects/conda/en/stable/user-guide/tasks/manage-virtual.html
    """

    name: str
    version: str
    build: str = "0"

    def __str__(self) -> str:
        return f"{self.name}={self.version}" + ("" if self.build == "0" else f"={self.build}")


class CondaPackage(NamedTuple):
    """A package of a channel, or of a lock. Unknown fields are empty or None.

    ``subdir`` is a platform or ``noarch``. ``url`` is the address of the file and ``channel`` that of its channel, both
    without credentials. ``size`` is in bytes. ``depends`` and ``constrains`` are match specs as in the record,
    including those on virtual packages. ``categories`` are its groups in a lock (``dev`` and so on), none if it is for
    everyone.
    """

    name: str
    version: str
    build: str
    subdir: str
    url: str
    md5: str | None = None
    sha256: str | None = None
    size: int | None = None
    build_number: int = 0
    depends: tuple[str, ...] = ()
    constrains: tuple[str, ...] = ()
    channel: str = ""
    categories: tuple[str, ...] = ()

    @property
    def file_name(self) -> str:
        """The last part of its address."""
        return self.url.rpartition("/")[2]

    @property
    def requires(self) -> tuple[str, ...]:
        """The names of the packages that it depends on, each once, without virtual ones."""
        named = filter(None, map(_NAME.match, self.depends))
        return tuple(dict.fromkeys(it[1] for it in named if not it[1].startswith("__")))

    @property
    def is_python_package(self) -> bool:
        """Whether it installs for Python.

        The conda packages tzdata and graphviz do not, although Python packages have these names.
        """
        return bool({"python", "python_abi"} & set(self.requires))
