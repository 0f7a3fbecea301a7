"""Whether two texts of one file differ in more than who made them, and on a driver of which number.

A new envsolve alone changes no lock, nor does a driver that needs no other packages, nor another GPU of the same
compute capability: what a lock rests on is the lowest driver that it needs and the set of capabilities. Nor does it
matter whether a lock says of a project's own words that the command line asks for them, as envsolve once did.
"""

from __future__ import annotations

import re
from collections.abc import Callable

Capability = Callable[[str], str]
"""The compute capability of a GPU as typed; the word itself where it is none."""

_MADE = re.compile(r"^# Made by envsolve \S+?(?: from the compatibility matrix of \S+?)?(?= that |:$)", re.MULTILINE)
_FACT = re.compile(
    r'^([ \t]*(?:# )?"?(?:envsolve\.)?(?:envsolve_version|matrix_date|created_by)"?[ \t]*[:=]).*$', re.MULTILINE
)
_FOR = re.compile(r"^# For: .*$", re.MULTILINE)
_PRODUCT = re.compile(r"(?<=, )[^,]*?\(?(\d+\.\d)\)?(?=,|$)")
_COMMAND = re.compile(r'^(?:#   |(?:# )?[ \t]*"?(?:envsolve\.)?command"?[ \t]*[:=]).*$', re.MULTILINE)
_CUDA_OF_DRIVER = re.compile(r"(?:, |(?<=\[)\"|, \")__cuda=[0-9.]+\"?")
_CONTENT_HASH = re.compile(r"^( {4}(?:linux|osx|win)-\w+: ).*$", re.MULTILINE)
"""What conda-lock.yml hashes stands in it once more, the CUDA of the driver among it."""
_DRIVER = re.compile(r" --driver [0-9.]+|,? driver [0-9.]+")
_GPUS = re.compile(r"(?: --gpu ('+[^']*'+|\S+))+")
_GPU = re.compile(r" --gpu ('+[^']*'+|\S+)")
_VIA = re.compile(r"^ +# via(?: .+|(?:\n +#   .+)+)$|^via = \[[^\]]*\]$", re.MULTILINE)
_ASKING = re.compile(r'^ +# (?:via|  )(.+)$|"([^"]*)"', re.MULTILINE)
"""Who requires a package: in a requirements.txt, and in a pylock.toml."""
_ASKER = r"(?:the command line|pyproject\.toml|envsolve\.toml)"
_ASKED = re.compile(rf"^(  - )'?{_ASKER}'?$|(?<=asked for by ){_ASKER}", re.MULTILINE)
"""The sources in a conda-lock.yml, and comments in an environment.yml."""
_NEWEST = re.compile(r"a newer (\S+), (\S+), needs(?= NVIDIA driver )")
"""A note, which once left out that it is of another release."""
_ORIGIN = re.compile(r'^( *"(?:driver|gpus)": )"(?:--\w+|\w+ in (?:pyproject|envsolve)\.toml)"', re.MULTILINE)


def same_but_for_maker(one: str, other: str, capability: Capability = str) -> bool:
    """Whether they say the same, whichever envsolve wrote them, from the matrix of whichever day.

    Of the machine, its driver in the command and the names of its products do not count, but for the compute
    capability that ``capability`` knows of them.
    """
    return one == other or _without_maker(one, capability) == _without_maker(other, capability)


def _without_maker(text: str, capability: Capability) -> str:
    text = _FACT.sub(r"\1", _MADE.sub("# Made by envsolve", "\n".join(text.splitlines())))
    text = _FOR.sub(lambda line: _PRODUCT.sub(r"\1", line[0]), text)
    text = _NEWEST.sub(r"\1 \2 needs", text)
    text = _CONTENT_HASH.sub(r"\1", _CUDA_OF_DRIVER.sub("", text))
    text = _VIA.sub(_askers, _ORIGIN.sub(r"\1", _ASKED.sub(r"\1", text)))

    def told(command: re.Match[str]) -> str:
        return _GPUS.sub(lambda found: _capabilities(found[0], capability), _DRIVER.sub("", command[0]))

    return _COMMAND.sub(told, text)


def _askers(found: re.Match[str]) -> str:
    """Who asks for a package, in whichever order: the name of a project is one of its command line."""
    named = {re.sub(rf"^{_ASKER}$", "", (line or quoted).strip()) for line, quoted in _ASKING.findall(found[0])}
    return f"via {sorted(named)}"


def _capabilities(options: str, capability: Capability) -> str:
    """Options that name GPUs, as those that name their capabilities, each once."""
    found = sorted({capability(name.strip("'")) for name in _GPU.findall(options)})
    return "".join(f" --gpu {it}" for it in found)
