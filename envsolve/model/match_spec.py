"""Conda's match specs: read in every form that conda accepts, written in one form that all solvers read.

CEP 29 describes the language and its history: ``numpy=1.26`` is any 1.26, ``numpy 1.26`` is only that version, and
``numpy=1.26=py311*`` is again only that version. conda, mamba and rattler agree on ``numpy ==1.26 py311*``.
https://conda.org/learn/ceps/cep-0029
"""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import unquote

from envsolve.boundary.secrets import without_secrets

_LONGEST = 1000
_NAME = re.compile(r"[a-z0-9_][a-z0-9._-]*\Z")
_PARTS = re.compile(r"([^\s=<>!~]+)\s*((?:[\s=<>!~].*)?)\Z", re.DOTALL)
"""The name, then the versions and builds."""
_VERSION_AND_BUILD = re.compile(r"(.+?[^><!,|]?)(?:(?<![=!|,<>~])[ =]([^-=,|<>~ ]+))?\Z")
"""As in conda (conda/models/match_spec.py, _VERSION_BUILD_RE): text after an operator is not a build."""
_AROUND_OPERATORS = re.compile(r"\s*(,|\||[<>=!~]=?)\s*")
_CLAUSE = re.compile(r"(==|!=|<=|>=|~=|=|<|>|)([^=<>!~][^=<>~]*)\Z")
_LITERAL = re.compile(r"(?:\d+!)?[0-9a-z]+(?:[._-][0-9a-z]+)*_?(?:\+[0-9a-z]+(?:[._-][0-9a-z]+)*)?\Z")
_NUMBER = re.compile(r"\d{19}")
_PLAIN_BUILD = re.compile(r"[A-Za-z0-9_*]+\Z")
_BUILD = re.compile(r"[A-Za-z0-9_.+*]+\Z|\^[^\s\"'\\\[\]]+\$\Z")
"""Letters and signs of a build with wildcards, or a regular expression between ``^`` and ``$``."""
_PAIR = re.compile(r"""\s*([a-z0-9_]+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s,"'\[\]]*))\s*(?:[,\s]|\Z)""")
_HEXADECIMAL = {"md5": re.compile(r"[0-9a-f]{32}\Z"), "sha256": re.compile(r"[0-9a-f]{64}\Z")}
_COUNT = re.compile(r"(?:[<>=!]=|[<>])?\d{1,9}\Z")
_VALUE = re.compile(r"[^\"\\\[\]]+\Z")
_KEPT = ("build_number", "fn", "license", "license_family", "md5", "sha256", "track_features", "url")
_CHANNEL = re.compile(r"[^\s\"'\[\]]+\Z")
_SUBDIR = re.compile(r"noarch\Z|(?:linux|osx|win|emscripten|wasi|freebsd|zos)-[a-z0-9]+\Z")
_FILE = re.compile(r"(?P<name>[^\s#]+)-[^-\s#]+-[^-\s#]+\.(?:conda|tar\.bz2)(?:#(?P<digest>\S+))?\Z")


class MatchSpec(NamedTuple):
    """A match spec. Fields that it leaves open are empty.

    ``version`` has an operator or a wildcard in each of its clauses: ``==1.26``, ``1.26.*``, ``>=1.2,<2``. ``channel``
    is a name or an address without credentials. ``more`` are the other conditions in brackets, sorted by key.
    """

    name: str
    version: str = ""
    build: str = ""
    channel: str = ""
    subdir: str = ""
    more: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        more = list(self.more)
        plain = bool(_PLAIN_BUILD.match(self.build))
        if self.build and not plain:
            more.append(("build", self.build))
        channel = self.channel
        if channel and self.subdir:
            channel = f"{channel}/{self.subdir}"
        elif self.subdir:
            more.append(("subdir", self.subdir))
        words = [self.name, self.version or "*", self.build] if plain else [self.name, self.version]
        bracketed = ",".join(f'{key}="{value}"' for key, value in sorted(more))
        before, after = f"{channel}::" if channel else "", f"[{bracketed}]" if bracketed else ""
        return f"{before}{' '.join(filter(None, words))}{after}"

    @property
    def exact_version(self) -> str | None:
        """The only version that it admits, or None if it admits several."""
        version = self.version.removeprefix("==")
        return version if version != self.version and _LITERAL.match(version) else None


def parse_match_spec(text: str) -> MatchSpec:
    """Read ``text`` as conda does, including addresses of packages. Raises ValueError with the reason."""
    if len(text) > _LONGEST or not text.isprintable():
        raise ValueError("it is too long, or contains invalid characters")
    stripped = " ".join(text.split())
    file = _FILE.match(stripped.rpartition("/")[2]) if "://" in stripped and " " not in stripped else None
    if file is not None:
        return _of_address(stripped, file)
    stripped = stripped.partition("#")[0].rstrip()
    rest, given = _brackets(stripped)
    channel, subdir, rest = _channel(rest)
    name, versions = _name(rest)
    version, build = _version_and_build(versions)
    given_channel, given_subdir = _split_subdir(given.pop("channel", ""))
    spec = MatchSpec(
        name,
        _given_version(given.pop("version")) if "version" in given else version,
        _checked_build(given.pop("build", build)),
        _checked_channel(given_channel or channel),
        given.pop("subdir", "") or given_subdir or subdir,
    )
    if spec.subdir and not _SUBDIR.match(spec.subdir):
        raise ValueError(f"{spec.subdir!r} is not a conda platform")
    return spec._replace(more=_more(given))


def _of_address(text: str, file: re.Match[str]) -> MatchSpec:
    """A spec that is the address of one package, with its digest as in explicit files."""
    digest = (file["digest"] or "").removeprefix("sha256:")
    more = {key: digest for key, form in _HEXADECIMAL.items() if form.match(digest)}
    if digest and not more:
        raise ValueError("the text after its URL is neither an md5 nor a sha256")
    more["url"] = text.partition("#")[0]
    return MatchSpec(_checked_name(unquote(file["name"])), more=_more(more))


def _brackets(text: str) -> tuple[str, dict[str, str]]:
    """The text before the brackets, and the values in them by key."""
    before, bracket, inside = text.partition("[")
    if not bracket:
        return text, {}
    if not inside.endswith("]"):
        raise ValueError("its bracket does not end it")
    pairs: dict[str, str] = {}
    position, end = 0, len(inside) - 1
    while position < end:
        found = _PAIR.match(inside, position, end)
        if found is None or found[1] in pairs:
            raise ValueError(
                "brackets contain each key once with its value, as in [build='py311*']; conda has no extras"
            )
        pairs[found[1]] = next((value for value in found.groups()[1:] if value is not None), "")
        position = found.end()
    if "build_string" in pairs:
        pairs.setdefault("build", pairs.pop("build_string"))
    for ignored in ("name", "namespace"):
        pairs.pop(ignored, None)
    return before, pairs


def _channel(text: str) -> tuple[str, str, str]:
    """The channel, its platform, and the rest. A namespace is ignored, as in CEP 29."""
    before, colons, rest = text.rpartition("::")
    if not colons:
        before, _, rest = text.rpartition(":")
        before = before.rpartition(":")[0]
    channel, subdir = _split_subdir(before.strip())
    return channel, subdir, rest.strip()


def _split_subdir(channel: str) -> tuple[str, str]:
    before, _, last = channel.rpartition("/")
    return (before, last) if before and _SUBDIR.match(last) else (channel, "")


def _checked_channel(channel: str) -> str:
    stripped = without_secrets(channel).rstrip("/")
    if channel and not _CHANNEL.match(stripped):
        raise ValueError("its channel is neither a name nor a URL")
    return stripped


def _name(text: str) -> tuple[str, str]:
    found = _PARTS.match(text)
    if found is None:
        raise ValueError("it has no package name")
    return _checked_name(found[1]), found[2].strip()


def _checked_name(name: str) -> str:
    lowered = name.lower()
    if not _NAME.match(lowered):
        raise ValueError(f"{name!r} is not a conda package name")
    return lowered


def _version_and_build(text: str) -> tuple[str, str]:
    tight = _AROUND_OPERATORS.sub(r"\1", text)
    if not tight:
        return "", ""
    found = _VERSION_AND_BUILD.match(tight)
    if found is None:
        raise ValueError("its version cannot be read")
    version, build = found[1], found[2] or ""
    return _version(version, fuzzy=not build), build


def _given_version(text: str) -> str:
    """A version in brackets. There, a build does not change the meaning of a single equals sign."""
    return _version(_AROUND_OPERATORS.sub(r"\1", text.strip()), fuzzy=True)


def _version(text: str, *, fuzzy: bool) -> str:
    """``text`` with an operator or a wildcard in each clause. With ``fuzzy``, ``=1.26`` is any 1.26."""
    fuzzy = fuzzy or "," in text or "|" in text
    either = (",".join(_clause(clause, fuzzy=fuzzy) for clause in both.split(",")) for both in text.split("|"))
    written = "|".join(either)
    return "" if written == "*" else written


def _clause(text: str, *, fuzzy: bool) -> str:
    found = _CLAUSE.match(text)
    if found is None:
        raise ValueError(f"its version has {text!r} where an operator and a version belong")
    operator, operand = found.groups()
    if operand == "*" and operator in ("", "="):
        return "*"
    version = (operand[:-1].removesuffix(".") if operand.endswith("*") else operand).lower()
    if not _is_literal(version):
        raise ValueError(f"{operand!r} is neither a version nor a version prefix with *")
    if version == operand.lower():
        return _without_wildcard(operator, version, fuzzy=fuzzy)
    return _with_wildcard(operator, version)


def _is_literal(version: str) -> bool:
    """Whether it is a CEP 33 version with 64-bit numbers, and with hyphens or underscores but not both."""
    mixed = "-" in version and "_" in version
    return _LITERAL.match(version) is not None and _NUMBER.search(version) is None and not mixed


def _without_wildcard(operator: str, version: str, *, fuzzy: bool) -> str:
    if operator == "=" and fuzzy:
        return f"{version}.*"
    return f"=={version}" if operator in ("", "=") else f"{operator}{version}"


def _with_wildcard(operator: str, version: str) -> str:
    """The clause without a wildcard that conda ignores after an order operator; ``==1.26.*`` becomes ``1.26.*``."""
    if operator == "~=":
        raise ValueError("~= cannot be used with a wildcard")
    if operator == "!=":
        return f"!={version}.*"
    return f"{operator}{version}" if operator in ("<", "<=", ">", ">=") else f"{version}.*"


def _checked_build(build: str) -> str:
    if build and not _BUILD.match(build):
        raise ValueError(f"{build!r} is not a build")
    return "" if build == "*" else build


def _more(given: dict[str, str]) -> tuple[tuple[str, str], ...]:
    for key, value in given.items():
        form = _HEXADECIMAL.get(key) or (_COUNT if key == "build_number" else _VALUE)
        if key not in _KEPT:
            raise ValueError(f"packages cannot be selected by {key!r}")
        if not form.match(value):
            raise ValueError(f"{value!r} is not a valid {key}")
    if "url" in given:
        given = given | {"url": without_secrets(given["url"])}
    return tuple(sorted(given.items()))
