"""Whether the file that is to be written would take the place of one that somebody wrote by hand.

A tool makes its file again; what a person wrote is nowhere else. So a file that asks for packages, or holds a table of
somebody's settings, may go only where it says that a tool made it, is of the shape of a lock, or names one version of
everything without a remark of anybody, as ``pip freeze`` and ``conda env export`` do. What it is called does not count,
and text that is nothing of all this is replaced, as by other tools. What tools write that is none of these formats, as
the JSON of ``pip inspect``, cannot be told from settings, and stays. This module loads little, since most files say at
once who made them.
"""

from __future__ import annotations

import os.path
import re
from collections.abc import Iterator
from pathlib import Path

from envsolve.boundary.files import FileError, read_text
from envsolve.errors import Hint, UsageError

LONGEST = 16 * 1024 * 1024
"""Bytes; what is longer is no lock that envsolve would read."""
BY_FORCE = Hint("or have it replaced: --force")
_MADE = re.compile(
    r"""\#+\s*(?:
        Made\ by\ envsolve\b                                # envsolve.lock.header
        | Exported\ from\ [^\n]+\ by\ envsolve\b            # envsolve.lock.recorded
        | (?:this|these)\ [\w\ ]{1,40}\ (?:is|was|were)\ (?:
            (?:auto-?|automatically\ @?|@)generated         # pip-compile, uv, hatch, pipenv; Poetry, Cargo; PDM
            (?=\ (?:by|with|from)\ |[.,;!]|\s*\Z)
            | generated\ (?:by|with)\ conda-lock\b          # its lock
          )
        | generated\ by\ (?:conda-lock|rye|`pixi\ )         # explicit files of conda-lock and pixi, Rye
        | This\ file\ may\ be\ used\ to\ create\ an\ environment\ using:   # conda list --explicit, --export
    )""",
    re.VERBOSE | re.IGNORECASE,
)
"""How the comments on top of a file say that a tool made it: in a whole sentence, or with the name of the tool."""
_FRAMEWORKS = ("torch", "tensorflow", "jax", "cupy", "onnxruntime", "paddlepaddle", "keras")
"""Packages that a list of requirements may hold alone."""
_OF_MERGE = ("<<<<<<<", "|||||||", "=======", ">>>>>>>")
"""Begins the lines that git puts around both sides of a merge."""
_YAML_KEY = re.compile(r"""^(["']?)([\w-]+)\1[ \t]*:""", re.MULTILINE)
_TOML_KEY = re.compile(r"^([\w-]+)[ \t]*=(?!=)", re.MULTILINE)
_TOML_TABLE = re.compile(r"^\[", re.MULTILINE)
_SHAPES = (
    {"lock-version", "created-by"},  # pylock.toml (PEP 751, where both are required)
    {"version", "metadata", "package"},  # conda-lock.yml
    {"version", "environments", "packages"},  # pixi.lock
    {"envsolve_version", "frameworks"},  # envsolve --json
    {"_meta", "default", "develop"},  # Pipfile.lock
)
"""Keys that locks have at the top, and manifests do not."""
_EXPLICIT = re.compile(r"^[ \t]*@EXPLICIT[ \t\r]*$", re.MULTILINE)
_OPENS = re.compile(r"""(["']?)[\w-]+\1[ \t]*:(?:[ \t]+(?:(?P<value>[\[{](?:.*[\]},\[{])?)|[&!|>]\S*))?\Z""")
"""A key of YAML whose value is no plain scalar, or on the lines below."""
_TABLE = re.compile(r"""^\[\[?[\w."' -]+\]\]?[ \t\r]*(?:#.*)?$""", re.MULTILINE)
_FROM = re.compile(r"^[ \t]*FROM[ \t]+\S", re.MULTILINE)
_STAGE = re.compile(
    r"^[ \t]*from[ \t]+(?:--platform=\S+[ \t]+)?(?P<image>\S+)(?:[ \t]+as[ \t]+\S+)?[ \t\r]*$",
    re.MULTILINE | re.IGNORECASE,
)
"""The instruction of a Dockerfile in any case, which prose can hold as well where a line breaks."""
_INSTRUCTION = re.compile(
    r"^[ \t]*(?:add|arg|cmd|copy|entrypoint|env|expose|healthcheck|label|run|shell|user|volume|workdir)[ \t]+\S",
    re.MULTILINE | re.IGNORECASE,
)
_IMAGE_MARK = re.compile(r"\w[:/@]\w|\$")
"""Between an image and its registry, tag or digest, or before a variable."""
_SELECTOR = re.compile(r"\bsel\(")
"""What people write for several platforms; an export is of one."""
_CONDA_PIN = re.compile(r"(?:\S+::)?[\w.-]+(?P<is>==?)(?P<version>[\w.!+]+)(?:=(?P<build>[\w.+]+))?\Z")
_WHOLE_PYTHON = re.compile(r"(?:\S+::)?python==?\d+\.\d+\.\w+")
_HASH = re.compile(r"\s--hash[= ]\w+:")
_COMMENT = re.compile(r"(?:^|\s+)#.*$")
_AT = re.compile(r"[A-Za-z0-9][\w.-]*\s*(?:\[[^\]]*\]\s*)?(?:@\s*\S|===\s*[^\s*]+)")
"""``name @ URL`` and ``name===version``, the latter for a version of no standard form."""
_OPTION = re.compile(
    r"(?:-i|-f|--(?:extra-)?index-url|--find-links|--no-index|--(?:no|only)-binary|--prefer-binary|--pre"
    r"|--require-hashes|--trusted-host|--use-feature)(?:[\s=]|\Z)"
)
"""Options of pip that ask for no package."""
_EDITABLE = re.compile(r"(?:-e|--editable)\s+(?:\w+\+\S+@[0-9a-f]{40}(?:#|\Z)|file:///\S+\Z)")
"""The commit that ``pip freeze`` names, and the address that ``uv pip freeze`` does."""
_LOCAL = re.compile(r"(?:(?:-e|--editable)\s+\S+|\.{1,2}(?:/\S*)?)(?:\s*;.*)?\Z")
"""A project or a member of a workspace as ``uv export`` names it, without a hash."""
_ADDRESS = re.compile(
    r"(?:[a-z][a-z0-9+.-]*://|(?:git|hg|svn|bzr)\+|~?/|\.{1,2}(?:[/\\\[]|\Z))\S*(?:\s*;.*|\s+--.*)?\Z", re.IGNORECASE
)
"""A line that is a URL, a repository or a path, for pip to install from."""
_FROZEN_EDITABLE = re.compile(
    r"##? (?:Editable(?:,| (?:\w+ )?install) |!! Could not determine repository location|'\S+'\r?$)"
)
"""What ``pip freeze`` says above a project that is edited (pip/_internal/operations/freeze.py)."""
_ANNOTATIONS = re.compile(
    "|".join(
        (
            r"(?<!\S)#[ \t]*via\b.*(?:\n[ \t]*# {2,}\S.*)*",  # what wants it: pip-compile, uv
            r"(?<!\S)# from \S+[ \t\r]*$",  # its index: uv
            # left out: pip-compile, uv
            (
                r"^# (?:The following packages (?:are|were) )?"
                r"(?:considered to be unsafe|commented out|excluded from the output)\b.*"
                r"(?:\n# [\w.-]+(?:==.*)?[ \t\r]*$)*"
            ),
            r"^## The following requirements were added by pip freeze:",
            rf"^{_FROZEN_EDITABLE.pattern}.*",
        )
    ),
    re.MULTILINE,
)
"""The comments that tools write among requirements, with or without a header."""


def refuse_hand_written(path: Path, *ways: Hint, in_doubt: bool = True) -> None:
    """Raise UsageError ``not-a-lock`` where somebody wrote the file at ``path`` by hand, or it is no text.

    What is no file, such as a pipe, holds nothing. ``ways`` are what else could be done. ``in_doubt`` says whether text
    that asks for nothing counts as written by hand, as it does for the outputs of a project.
    """
    if not os.path.isfile(path):  # noqa: PTH113 - no error for a name that is none
        return
    try:
        text = read_text(path, LONGEST) or ""
        stays = not is_made_by_tool(text) if in_doubt else is_by_hand(text)
        told = "looks as if somebody wrote it by hand" if stays else None
    except FileError as error:
        told = f"is no lock that envsolve knows ({error.reason})"
    if told is not None:
        message = f"{path} {told}, and what is written would take its place"
        raise UsageError("not-a-lock", message, hints=ways or (Hint("keep it under another name"), BY_FORCE))


def is_by_hand(text: str) -> bool:
    """Whether a file of this text says what somebody wants, and no tool made it."""
    return not is_made_by_tool(text) and _says_what_is_wanted(text)


def is_made_by_tool(text: str) -> bool:
    """Whether a file of this text can be made again: a tool made it, or there is nothing in it."""
    if not text.strip() or any(map(_MADE.match, _on_top(text))):
        return True
    keys = _top_keys(text)
    if _EXPLICIT.search(text) or any(shape <= keys for shape in _SHAPES):
        return True
    return _is_export(text) if "dependencies" in keys else _is_frozen(text)


def _on_top(text: str) -> Iterator[str]:
    """The comments that a file begins with."""
    for line in text.splitlines():
        if line.startswith("#"):
            yield line
        elif line.strip() not in ("", "---") and not line.startswith(_OF_MERGE):
            return


def _top_keys(text: str) -> set[str]:
    """The keys at the top of JSON, YAML or TOML; where it cannot be parsed, what looks like them."""
    keys = _keys_of_braces(text) if _is_in_braces(text) else None
    if keys is not None:
        return keys
    before_tables = _TOML_TABLE.split(text, maxsplit=1)[0]
    return {found[2] for found in _YAML_KEY.finditer(text)} | set(_TOML_KEY.findall(before_tables))


def _is_in_braces(text: str) -> bool:
    """Whether it begins as JSON does, and YAML in flow style."""
    lines = (line.removeprefix("---").strip() for line in text.splitlines())
    return next((line for line in lines if line and not line.startswith("#")), "").startswith("{")


def _keys_of_braces(text: str) -> set[str] | None:
    import json

    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        from envsolve.lock.environment_file import LONGEST as LONGEST_YAML
        from envsolve.lock.yaml_document import document_of

        try:
            document = document_of(text) if len(text) <= LONGEST_YAML else None
        except FileError:
            return None
        document = {key: value for key, value in document.items() if value} if isinstance(document, dict) else None
    return set(document) if isinstance(document, dict) else None


def _says_what_is_wanted(text: str) -> bool:
    """Whether it is an environment.yml, other settings in YAML, TOML or JSON, a Dockerfile or a list of requirements.

    One key of YAML counts where it holds more than a scalar. One bare word is no list, unless it is a framework: what
    else could hold it cannot be told.
    """
    keys = _top_keys(text)
    if "dependencies" in keys or len(keys) > 1 or (keys and (_is_in_braces(text) or _holds_more(text))):
        return True
    if _TABLE.search(text) or _is_dockerfile(text):
        return True
    from envsolve.lock.held_pins import joined_lines, name_of

    lines = [content for line in joined_lines(text) if (content := _COMMENT.sub("", line).strip())]
    asked = [line for line in lines if not line.startswith("-")]
    can_be_installed = all(name_of(line) is not None or _ADDRESS.match(line) for line in asked)
    is_word = len(lines) == 1 and lines[0].isidentifier() and lines[0].casefold() not in _FRAMEWORKS
    return can_be_installed and bool(lines) and not is_word


def _holds_more(text: str) -> bool:
    """Whether a key of YAML at the top holds a list or a table."""
    lines = [content for line in text.splitlines() if (content := _COMMENT.sub("", line).rstrip())]
    return any(
        (found := _OPENS.match(above)) and (found["value"] or below.startswith((" ", "\t", "- ")))
        for above, below in zip(lines, [*lines[1:], ""], strict=True)
    )


def _is_dockerfile(text: str) -> bool:
    """Whether it begins a stage of a build, with an image or another instruction where it does not shout."""
    if _FROM.search(text):
        return True
    images = [found["image"] for found in _STAGE.finditer(text)]
    return any(map(_IMAGE_MARK.search, images)) or (bool(images) and _INSTRUCTION.search(text) is not None)


def _is_export(text: str) -> bool:
    """Whether an environment.yml names one version of every package, as ``conda env export`` writes it.

    ``name=version`` is what ``--no-builds`` gives, and what people write for all versions that begin so: it counts
    where Python has all its numbers, which is more than anybody has to ask for. An export has no comment.
    """
    from envsolve.lock.environment_file import read_entries
    from envsolve.model.host import Platform

    if _SELECTOR.search(text) or _has_comment(text):
        return False
    try:
        entries = read_entries(text, Platform.LINUX_64)
    except FileError:
        return False
    pins = [_CONDA_PIN.match(entry) for entry, _ in entries.conda]
    is_whole = any(_WHOLE_PYTHON.match(entry) for entry, _ in entries.conda)
    is_exact = all(pin is not None and (is_whole or pin["build"] or pin["is"] == "==") for pin in pins)
    return bool(pins) and is_exact and _are_pins([entry for entry, _ in entries.pip])


def _is_frozen(text: str) -> bool:
    """Whether requirements have hashes, or name one version or address each, as ``pip freeze`` writes them."""
    from envsolve.lock.held_pins import joined_lines, name_of

    if _has_comment(_ANNOTATIONS.sub("", text)):
        return False
    lines: list[str] = []
    edited = 0
    above = ""
    for line in joined_lines(text):
        content = _COMMENT.sub("", line).strip()
        if content and _FROZEN_EDITABLE.match(above):
            edited += 1
        elif content:
            lines.append(content)
        above = line
    asked = [line for line in lines if not _OPTION.match(line)]
    is_hashed = any(map(_HASH.search, asked)) and all(name_of(it) is not None or _LOCAL.match(it) for it in asked)
    return bool(asked or edited) and (is_hashed or _are_pins(asked))


def _has_comment(text: str) -> bool:
    return any(map(_COMMENT.search, text.splitlines()))


def _are_pins(requirements: list[str]) -> bool:
    from envsolve.lock.held_pins import pin_of

    return all(
        pin_of(it) is not None or _AT.match(it) or _EDITABLE.match(it) or _OPTION.match(it) for it in requirements
    )
