"""Remove credentials from text: logins, tokens and keys.

Everything that envsolve prints, or writes to a file or a cache, goes through :func:`without_secrets`. What it shows of
logs and variables that others wrote goes through :func:`masked`. People paste such output in public.

Tokens are also recognised by their form; issuers choose forms that can be found
(https://docs.github.com/en/code-security/secret-scanning/introduction/supported-secret-scanning-patterns).

Every pattern begins with literals, and repetitions in it are bounded or end where the next one could begin: the time is
linear in the length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, partial

HIDDEN = "***"
"""What replaces a secret in a text that someone else wrote."""

# Patterns are compiled at their first use, since most commands need few of them.
_ADDRESS = r"""(?:(?<![^\s:'"`=(<,\[])//|(?:(?<=http:)|(?<=https:))/)[^\s:'"`\x1b]*(?::(?!//)[^\s:'"`\x1b]*)*"""
"""An address from its ``//`` on; the path of a local file keeps one ``/``. An address inside another one, as in a
query, is matched by itself.
"""
_WHOLE = r"(?:[A-Za-z][A-Za-z0-9+.-]*:)?//|https?:/"
_LOGIN = r"""(?sx)(?!(?:[\w-]+\.[\w.-]+|localhost)(?::\d+)?\s)(?:  # a host, and words after it
        [^/?\#]*@                                         # all up to the last @ before the path
        |(?!\[)[^/?\#:@]*:(?!\d*(?:[/?\#\s'",;)>]|\Z)).*@)  # what is no port is a password, which may hold a stroke
    """
_BARE_LOGIN = r"(?!git@)[^/?#:]*:(?!\d*(?:[/?#]|\Z)).*@(?!sha\d)"
"""In an address without a scheme; a container image has its digest after the ``@``."""
_BARE_TOKEN = r"(?:[^/]*[.:][^/]*/(?:[^?#]*/)?|localhost/(?:[^?#]*/)?)?t/[^/]"  # noqa: S105 - how one looks
"""An address of a channel without a scheme, or a name after conda's ``channel_alias``."""
_LOCAL = r"(?i)file:|[A-Za-z]:[/\\]|/(?!/)|\.\.?[/\\]|~[^/@]*(?:/|\Z)|.*\.(?:txt|in|ya?ml|toml|lock|json|log|whl)\Z"
"""A local path: it contains no token, and one of its directories may be called ``t``."""
_TOKEN = r"(?<!/source)(?:/|\A)t/(?P<token>[^/?#\\]+)(?=/(?P<next>[^/?#\\]*))?"  # noqa: S105 - how one looks
"""In a conda channel: anaconda.org, quetz and prefix.dev accept a token in the path, and conda finds it wherever ``t``
is (conda/common/url.py, split_anaconda_token). A mirror of packages has directories ``source/t``.
"""
_QUERY = r"""(?<=[^\s'"])(?:;[^\s'"`?#/\\\x1b]+|[?#](?:[^\s'"`?#\\\x1b]|\\\\|\\(?!["'\\]))+)"""
"""What follows the path of an address, or a part of the path (RFC 3986, section 3.3)."""
_SEPARATOR = r"([&;])"
_NAMES = (
    "token|secret|passw|pwd|signature|credential|bearer|jwt|x-(?:amz|goog)-|auth(?!or)"
    "|(?:api|access|private)[-_]?key|(?<![a-z])(?:sig|key)(?==)"
)
_SECRET_NAME = rf"(?i)[^=]{{0,64}}?(?:{_NAMES})[^=]*="
_ANY_SECRET_NAME = rf"(?i)[?&;#][^=&;#?\s]{{0,64}}?(?:{_NAMES})"
_SEPARATORS = r"[-_.]+"


def without_secrets(text: str) -> str:
    """``text`` without the secrets in its addresses; everything else is unchanged.

    It removes user names and passwords, the parts ``/t/TOKEN`` of paths and those that have the form of a token, and
    parameters whose names say that they are secret, such as ``token`` or ``X-Amz-Signature``. Names of variables in
    their place are removed too, since they are of use to one reader only. The account in ``ssh://`` stays, as do local
    directories, ``/t/NAME/NAME-1.0`` of a mirror that sorts packages by letter, and what is :data:`HIDDEN` already. A
    text that is only an address may lack a scheme.
    """
    if not any(map(text.__contains__, ("@", "/t/", "=", *_BEGINNINGS))) and not text.startswith("t/"):
        return text
    whole = re.match(_WHOLE, text)
    if whole is not None:  # someone may have typed a password with a space or a quote
        text = whole[0] + _without_login(text[whole.end() :], whole[0], "")
    elif not any(map(str.isspace, text)) and "://" not in text and not re.match(_LOCAL, text):
        text = _without_bare(text)
    return _without_addresses(text, "")


def _without_bare(text: str) -> str:
    login = re.match(_BARE_LOGIN, text)
    text = text if login is None else text[login.end() :]
    return re.sub(_TOKEN, partial(_token, hidden=""), text) if re.match(_BARE_TOKEN, text) else text


def _without_addresses(text: str, hidden: str) -> str:
    """``text`` with ``hidden`` in place of the secrets in its addresses."""
    if "@" in text or "/t/" in text:
        text = re.sub(_ADDRESS, partial(_address, hidden=hidden), text)
    if any(map(text.__contains__, _BEGINNINGS)):
        text = _path_tokens().sub(f"/{hidden}" if hidden else "", text)
    if not any(it in text for it in "?&;#") or re.search(_ANY_SECRET_NAME, text) is None:
        return text
    return re.sub(_QUERY, partial(_query, hidden=hidden), text)


def _address(found: re.Match[str], hidden: str) -> str:
    address = found[0].lstrip("/")
    slashes = found[0][: -len(address) or None]
    if "@" not in address and "/t/" not in address:
        return found[0]
    scheme = found.string[max(0, found.start() - len("file:")) : found.start()].lower()
    if scheme == "file:" or len(slashes) > len("//"):
        return found[0]
    host, slash, path = _without_login(address, scheme, hidden).partition("/")
    return f"{slashes}{host}{re.sub(_TOKEN, partial(_token, hidden=hidden), slash + path)}"


def _without_login(address: str, scheme: str, hidden: str) -> str:
    """``address``, which begins after the ``//`` of ``scheme``, without a login."""
    found = re.match(_LOGIN, address) if "@" in address else None
    if found is None or found[0] == f"{HIDDEN}@":
        return address
    account = ""
    if "ssh:" in scheme.lower():
        account, colon, _ = found[0][:-1].partition(":")
        hidden = colon and hidden and f":{hidden}"
    return f"{account}{hidden}@{address[found.end() :]}" if account or hidden else address[found.end() :]


def _token(found: re.Match[str], hidden: str) -> str:
    token, following = found["token"], found["next"]
    if token == HIDDEN or (following and _is_of_project(token, following)):
        return found[0]
    return f"/t/{hidden}" if hidden else ""


def _is_of_project(folder: str, file: str) -> bool:
    """Whether ``file`` belongs to a project with the name ``folder``, in the directory of the letter t."""
    name, full = (re.sub(_SEPARATORS, "-", it).lower() for it in (folder, file))
    return name.startswith("t") and full.startswith(f"{name}-")


def _query(found: re.Match[str], hidden: str) -> str:
    bare = found[0].rstrip(".,:;)]}>")
    end = found[0][len(bare) :]
    start, *parts = bare[0], *re.split(_SEPARATOR, bare[1:])
    secret = [re.match(_SECRET_NAME, part) for part in parts]
    if not any(secret):
        return found[0]
    if hidden:
        pairs = zip(secret, parts, strict=True)
        return start + "".join(f"{name[0]}{hidden}" if name else part for name, part in pairs) + end
    pairs = zip(secret[::2], parts[::2], strict=True)
    remaining = [part for name, part in pairs if not name or part == f"{name[0]}{HIDDEN}"]
    return f"{start}{(';' if start == ';' else '&').join(remaining)}{end}" if remaining else end


_ASSIGNMENT = r"""[\\"']{0,3}\s{0,4}(?::=|[:=])\s{0,4}"""
_VALUE = r"""\\?"[^"\n]*"?|\\?'[^'\n]*'?|[^\s"']+"""
"""With its quotes if it has any; otherwise it ends at a space, whatever it contains."""
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
_SPOKEN = r"(\b(?:api[-_ ]?key(?:\s{1,4}is)?|wandb\s{1,4}login(?:\s{1,4}--\S{1,40})?)\s{1,4})([\w-]{16,})"
"""As wandb prints it: ``wandb: api key 0123abcd...``."""
_LOGIN_FILE = r"(\blogin\s{1,4}\S{1,256}\s{1,4}password\s{1,4})(\S+)"
"""A line of a netrc file."""
_LOGIN_COMMAND = rf"((?<![\w-])(?:login|sshpass)\s[^\n|]{{0,200}}?(?<=\s)-p(?:\s{{1,4}}|=)?)({_VALUE})"
_USER = r"((?<![\w-])curl\s[^\n|]{0,300}?(?<=\s)(?:-u|--user)(?:\s{1,4}|=)?[\"']?[^\s:\"']{1,64}:)([^\s\"']+)"
"""One-letter options that have another meaning in other programs: ``docker run -p 80:80 -u 0:0``."""
_PERHAPS = rf"((?<![a-z_-])(?:token|credentials?|auth){_ASSIGNMENT})({_VALUE})"
"""Names that are also used for other things."""

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
_BEGINNINGS = ("/gh", "/gl", "/hf_", "/nvapi-", "/pypi-", "/npm_", "/dckr_")
"""The beginnings of parts of a path that may have such a form."""
_LONG = 16
_SHORT = 8


def masked(text: str) -> str:
    """``text``, which others wrote, with :data:`HIDDEN` in place of passwords, tokens and keys, in addresses or not.

    It masks too much rather than too little, but no version, path, digest or symbol of a library.
    """
    text = _without_addresses(text, HIDDEN)
    for pattern, instead in _patterns():
        text = pattern.sub(instead, text)
    return text


@cache
def _path_tokens() -> re.Pattern[str]:
    """A part of a path that is a token: it contains digits and has nothing before or after it."""
    return re.compile(rf"(?<=[\w\]])/(?=[^/\s]*\d)(?:{'|'.join(_TOKENS)})(?![\w-]|\.\w)")


@cache
def _patterns() -> tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...]:
    def ignoring_case(pattern: str) -> re.Pattern[str]:
        return re.compile(pattern, re.IGNORECASE)

    return (
        (ignoring_case(_HEADER), rf"\1{HIDDEN}"),
        (ignoring_case(_COOKIE), rf"\1{HIDDEN}"),
        (ignoring_case(_BEARER), rf"\1{HIDDEN}"),
        (re.compile(rf"(?<![A-Za-z0-9])(?:{'|'.join(_TOKENS)})"), HIDDEN),
        (ignoring_case(_NAMED), _quoted),
        (ignoring_case(_VARIABLE), _quoted),
        (ignoring_case(_OPTION), _quoted),
        (ignoring_case(_SPOKEN), _if_secret),
        (ignoring_case(_LOGIN_FILE), _quoted),
        (re.compile(_LOGIN_COMMAND), _quoted),
        (re.compile(_USER), _quoted),
        (ignoring_case(_PERHAPS), _if_secret),
    )


def _quoted(found: re.Match[str]) -> str:
    """The name, and the mask in the quotes of the value."""
    bare = found[2].lstrip("\\")
    if bare.startswith(HIDDEN):
        return found[0]
    quote = bare[0] if bare[:1] in {'"', "'"} else ""
    return f"{found[1]}{quote}{HIDDEN}{quote}"


def _if_secret(found: re.Match[str]) -> str:
    """Mask the value if it is long or mixed, as secrets are and words, numbers, versions and paths are not."""
    value = found[2].strip("\\\"'")
    mixed = any(map(str.isdigit, value)) and any(map(str.isalpha, value))
    is_secret = value.isascii() and (len(value) >= _LONG or (mixed and len(value) >= _SHORT))
    is_other = value.startswith(("/", "~", ".", "<", "[", "$")) or "\\" in value or value.replace(".", "").isdigit()
    return _quoted(found) if is_secret and not is_other else found[0]
