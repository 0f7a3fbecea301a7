"""What must not be shown of a log: whatever opens something for its reader. People paste what is shown in public.

Logins are masked where they stand: in addresses, in headers of HTTP, after the names of options, variables and keys;
and by the forms that those who hand them out gave to tokens so that they are found
(https://docs.github.com/en/code-security/secret-scanning/introduction/supported-secret-scanning-patterns). A word too
much is masked rather than one too few, but no version, no path, no digest and no symbol of a library.

Every pattern begins with literals, and what repeats in it is bounded or ends where the next one could begin: the time
is linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

HIDDEN = "***"

_ADDRESS = r"""://[^\s'"<>|]+"""
_LOGIN = r"\A://(?!git@)(?:[^/?#]+@|(?!\[)[^/?#:@]*:(?!\d*(?:[/?#]|\Z))[^?#]*@)"
"""All up to the last @ before the path; what follows a colon and is no port is a password, which may hold a stroke."""
_IN_CHANNEL = r"(?<=[^/]/t/)[^/?#]+"
_PARAMETER = (
    r"([?&;#][^=&;#]{0,64}?(?:token|secret|passw|pwd|signature|credential|(?<![a-z])sig(?==)|key(?==)|auth(?!or))"
    r"[^=&;#]{0,32}=)[^&;#]+"
)

_ASSIGNMENT = r"""[\\"']{0,3}\s{0,4}(?::=|[:=])\s{0,4}"""
_VALUE = r"""\\?"[^"\n]*"?|\\?'[^'\n]*'?|[^\s"']+"""
"""With its quotes, if it has any; else it ends at a space, whatever is in it."""
_HEADER = rf"(authorization{_ASSIGNMENT}[\\\"']{{0,3}}(?:(?:bearer|basic|token|negotiate)\s{{1,4}})?)[^\s\"']+"
_COOKIE = rf"(cookie{_ASSIGNMENT}[\\\"']{{0,3}})[^\"'\n]+"
_BEARER = r"(?<![a-z])(bearer\s{1,4})[\w.~+/-]{16,}=*"
_NAMED = (
    r"((?:password|passwd|passphrase|secret|(?<![a-z])pwd(?!\s?[:=]\s?/)"
    r"|(?:api|access|secret|private|auth|account|signing|encryption)[-_ ]?key(?:[-_]?id)?"
    r"|(?:api|auth|access|refresh|session|security|private|personal|deploy|job|bot|hub|hf|gh|github|id)[-_]?token)"
    rf"{_ASSIGNMENT})(?!(?:none|null|true|false)\b)({_VALUE})"
)
_VARIABLE = rf"((?-i:_(?:TOKEN|KEY|SECRET|PASS|PWD|AUTH))=)({_VALUE})"
_OPTION = (
    r"((?<![\w-])--?[\w-]{0,40}?(?:token|password|passwd|passphrase|secret|api-?key|access-?key|auth-?key)"
    rf"(?:\s{{1,4}}|=))(?!(?:is|was|and|or|to|in|must|not|option|argument|flag)\b|-)({_VALUE})"
)
_LOGIN_FILE = r"(\blogin\s{1,4}\S{1,256}\s{1,4}password\s{1,4})(\S+)"
"""A line of a file netrc."""
_LOGIN_COMMAND = rf"((?<![\w-])(?:login|sshpass)\s[^\n|]{{0,200}}?(?<=\s)-p(?:\s{{1,4}}|=)?)({_VALUE})"
_USER = r"((?<![\w-])curl\s[^\n|]{0,300}?(?<=\s)(?:-u|--user)(?:\s{1,4}|=)?[\"']?[^\s:\"']{1,64}:)([^\s\"']+)"
"""Options of one letter, which stand for something else with other programs: ``docker run -p 80:80 -u 0:0``."""
_PERHAPS = rf"((?<![a-z_-])(?:token|credentials?|auth){_ASSIGNMENT})({_VALUE})"
"""Names that are used of other things as well."""

_TOKENS = (
    r"gh[opsur]_[A-Za-z0-9]{16,}",  # GitHub
    r"github_pat_\w{16,}",
    r"gl(?:pat|dt|rt|cbt|ptt|ft|soat|agent|oas)-[\w-]{16,}",  # GitLab
    r"hf_[A-Za-z0-9]{16,}",  # Hugging Face
    r"nvapi-[\w-]{16,}",  # NVIDIA
    r"sk-(?:[a-z0-9]{2,10}-){0,3}\w{16,}[\w-]*",  # OpenAI, Anthropic
    r"pypi-\w{16,}[\w-]*",
    r"npm_[A-Za-z0-9]{16,}",
    r"(?:AKIA|ASIA)[A-Z0-9]{12,}",  # AWS
    r"AIza[\w-]{20,}",  # Google
    r"xox[abeoprs]-[\w-]{8,}",  # Slack
    r"dckr_[a-z]{3}_[\w-]{16,}",  # Docker
    r"eyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?",  # JSON Web Token
    r"(?<=/t/)[a-z]{2}-[\w-]{16,}",  # anaconda.org, in a channel without a scheme
)
_LONG = 16
_SHORT = 8


def masked(text: str) -> str:
    """``text`` with ``***`` in place of passwords, tokens and keys."""
    for pattern, instead in _patterns():
        text = pattern.sub(instead, text)
    return text


@cache
def _patterns() -> tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...]:
    def ignoring_case(pattern: str) -> re.Pattern[str]:
        return re.compile(pattern, re.IGNORECASE)

    return (
        (re.compile(_ADDRESS), _address),
        (ignoring_case(_HEADER), rf"\1{HIDDEN}"),
        (ignoring_case(_COOKIE), rf"\1{HIDDEN}"),
        (ignoring_case(_BEARER), rf"\1{HIDDEN}"),
        (re.compile(rf"(?<![A-Za-z0-9])(?:{'|'.join(_TOKENS)})"), HIDDEN),
        (ignoring_case(_NAMED), _quoted),
        (ignoring_case(_VARIABLE), _quoted),
        (ignoring_case(_OPTION), _quoted),
        (ignoring_case(_LOGIN_FILE), _quoted),
        (re.compile(_LOGIN_COMMAND), _quoted),
        (re.compile(_USER), _quoted),
        (ignoring_case(_PERHAPS), _if_secret),
    )


@cache
def _of_addresses() -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    return re.compile(_LOGIN), re.compile(_IN_CHANNEL), re.compile(_PARAMETER, re.IGNORECASE)


def _address(found: re.Match[str]) -> str:
    """An address, from ``://`` on, without its login. A file of this machine has none."""
    login, token, parameter = _of_addresses()
    address = found[0]
    if not address.startswith(":///"):
        address = token.sub(HIDDEN, login.sub(f"://{HIDDEN}@", address))
    return parameter.sub(rf"\1{HIDDEN}", address)


def _quoted(found: re.Match[str]) -> str:
    """The name, and what hides the value in the quotes that it has."""
    bare = found[2].lstrip("\\")
    if bare.startswith(HIDDEN):
        return found[0]
    quote = bare[0] if bare[:1] in {'"', "'"} else ""
    return f"{found[1]}{quote}{HIDDEN}{quote}"


def _if_secret(found: re.Match[str]) -> str:
    """As above where the value is long or mixed, as secrets are and words, numbers, versions and paths are not."""
    value = found[2].strip("\\\"'")
    mixed = any(map(str.isdigit, value)) and any(map(str.isalpha, value))
    is_secret = value.isascii() and (len(value) >= _LONG or (mixed and len(value) >= _SHORT))
    is_other = value.startswith(("/", "~", ".", "<", "[", "$")) or "\\" in value or value.replace(".", "").isdigit()
    return _quoted(found) if is_secret and not is_other else found[0]
