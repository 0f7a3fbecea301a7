"""Everything in a Python lock of whichever tool."""

from __future__ import annotations

import pytest
import tomli

from envsolve.boundary.files import FileError
from envsolve.lockfile.whole_conda import NotWholeError
from envsolve.lockfile.whole_python import WholePin, pylock_in, requirements_in

DIGEST = "a" * 64
WHEELS = f'wheels = [{{ url = "https://example.org/own-1-py3-none-any.whl", hashes = {{ sha256 = "{DIGEST}" }} }}]\n'
SHA = f"sha256:{DIGEST}"


@pytest.mark.parametrize(
    ("text", "pin"),
    [
        ("numpy==2.0\n", WholePin("numpy", "2.0")),
        (f"NumPy == 2.0 --hash={SHA}", WholePin("numpy", "2.0", (SHA,))),
        (
            f"numpy==2.0 \\\n    --hash={SHA} \\\n    --hash=md5:{'0' * 32}\n",
            WholePin("numpy", "2.0", (f"md5:{'0' * 32}", SHA)),
        ),
        ("numpy[dev]==2.0 ; python_version < '3.13'", WholePin("numpy", "2.0", marker="python_version < '3.13'")),
        ("numpy==2.0  # via pandas", WholePin("numpy", "2.0", via=("pandas",))),
        (
            "numpy==2.0\n    # via\n    #   -r in.txt\n    #   pandas\n",
            WholePin("numpy", "2.0", via=("-r in.txt", "pandas")),
        ),
        (
            "numpy==2.0\n    # from https://user:secret@example.org/simple/\n    # because: it is old\n",
            WholePin("numpy", "2.0", index_url="https://example.org/simple", because=("it is old",)),
        ),
        (
            f"own @ https://u:p@example.org/own-1.0-py3-none-any.whl --hash={SHA}",
            WholePin("own", "", (SHA,), url="https://example.org/own-1.0-py3-none-any.whl"),
        ),
    ],
)
def test_a_package_is_read_as_each_tool_writes_it(text: str, pin: WholePin) -> None:
    assert requirements_in(text, None).pins == (pin,)


def test_what_requires_a_package_says_what_that_requires() -> None:
    pandas, numpy = requirements_in(
        "pandas==3.0\n    # via -r in.txt\nnumpy==2.0\n    # via\n    #   pandas[x]\n", None
    ).pins
    assert (pandas.requires, numpy.requires) == (("numpy",), ())


def test_options_name_the_indexes() -> None:
    text = "-i https://a.example.org/\n--extra-index-url=https://u:p@b.example.org\n--require-hashes\nnumpy==2.0\n"
    read = requirements_in(text, None)
    assert (read.index_url, read.extra_index_urls) == ("https://a.example.org", ("https://b.example.org",))


@pytest.mark.parametrize(
    "marker", ["python_version > '3' --config-settings=x=y", "\\n--index-url https://evil.example.org"]
)
def test_what_is_no_marker_is_refused(marker: str) -> None:
    with pytest.raises(FileError, match=r"the marker of .*own.* is none"):
        pylock(f'name = "own"\nversion = "1"\nmarker = "{marker}"\n{WHEELS}')


@pytest.mark.parametrize("line", ["numpy", "numpy>=2", "numpy==2.*", "./own", "-c bounds.txt", "--no-binary :all:"])
def test_what_pins_nothing_is_refused(line: str) -> None:
    with pytest.raises(NotWholeError):
        requirements_in(line, None)


def pylock(text: str) -> WholePin:
    (pin,) = pylock_in(tomli.loads(f'lock-version = "1.0"\n[[packages]]\n{text}'), "", None).pins
    return pin


def test_a_pylock_of_another_tool_is_read() -> None:
    pin = pylock(
        'name = "numpy"\nversion = "2.0"\nmarker = "sys_platform == \'linux\'"\n'
        'dependencies = [{ name = "Own_Kernels" }]\n'
        f'wheels = [{{ url = "https://example.org/numpy-2.0-py3-none-any.whl", hashes = {{ sha256 = "{DIGEST}" }} }}]\n'
    )
    assert (pin.name, pin.version, pin.hashes, pin.index_url) == ("numpy", "2.0", (SHA,), None)
    assert (pin.marker, pin.requires) == ("sys_platform == 'linux'", ("own-kernels",))
    assert [it.name for it in pin.files] == ["numpy-2.0-py3-none-any.whl"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('vcs = { type = "git", url = "https://example.org/own.git", commit-id = "0" }', "a folder or a repository"),
        ('directory = { path = "." }', "a folder or a repository"),
        ("marker = \"'dev' in dependency_groups\"\nwheels = []", "an extra or a group"),
        ('archive = { path = "own.whl", hashes = { sha256 = "a" } }', "a file of one machine"),
        ('version = "1.0"', "has no file"),
    ],
)
def test_what_requirements_cannot_say_is_refused(text: str, reason: str) -> None:
    with pytest.raises(NotWholeError, match=reason):
        pylock(f'name = "own"\n{text}\n')
