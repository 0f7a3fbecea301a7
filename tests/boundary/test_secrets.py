"""Credentials are removed from every text, and nothing else is."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from envsolve.boundary.secrets import without_secrets


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("url", "without"),
    [
        ("https://user:secret@127.0.0.1/channel", "https://127.0.0.1/channel"),
        ("https://user@127.0.0.1:8080/channel", "https://127.0.0.1:8080/channel"),
        ("https://us%40er:sec%2Fret@127.0.0.1/channel", "https://127.0.0.1/channel"),
        ("https://user:sec@ret@127.0.0.1/channel", "https://127.0.0.1/channel"),
        ("https://user:sec/ret@127.0.0.1/channel", "https://127.0.0.1/channel"),
        ("https://${USER}:${SECRET}@127.0.0.1/channel", "https://127.0.0.1/channel"),
        ("https://user:secret@[::1]:80/channel", "https://[::1]:80/channel"),
        ("//user:secret@127.0.0.1/channel", "//127.0.0.1/channel"),
        ("user:secret@127.0.0.1/channel", "127.0.0.1/channel"),
        ("https://127.0.0.1/t/tk-123-secret/channel", "https://127.0.0.1/channel"),
        ("https://127.0.0.1/conda/t/tk-123-secret", "https://127.0.0.1/conda"),
        (
            "https://127.0.0.1/t/pfx_secret/channel/linux-64/a-1-0.conda",
            "https://127.0.0.1/channel/linux-64/a-1-0.conda",
        ),
        ("https://127.0.0.1/t/<TOKEN>/channel", "https://127.0.0.1/channel"),
        ("https://127.0.0.1/t/*****/channel", "https://127.0.0.1/channel"),
        ("https://127.0.0.1/t/${SECRET}/channel", "https://127.0.0.1/channel"),
        ("https://127.0.0.1/t//t/secret/channel", "https://127.0.0.1/t//channel"),
        ("https://user:secret@127.0.0.1/t/secret/channel?of=1#abc", "https://127.0.0.1/channel?of=1#abc"),
        ("127.0.0.1/t/secret/channel", "127.0.0.1/channel"),
        ("t/secret/channel", "/channel"),
        ("https://127.0.0.1/t/secret?of=1", "https://127.0.0.1?of=1"),
        ("https://127.0.0.1/simple/t/secret/simple", "https://127.0.0.1/simple/simple"),
        ("https://us 'er:sec\"ret@127.0.0.1/channel", "https://127.0.0.1/channel"),
        ("https://user:s3cr#et@127.0.0.1/channel", "https://127.0.0.1/channel"),
        ("https://secret@127.0.0.1", "https://127.0.0.1"),
        ("ssh://git:secret@127.0.0.1/a", "ssh://git@127.0.0.1/a"),
        ("https://127.0.0.1/simple?token=secret", "https://127.0.0.1/simple"),
        ("https://127.0.0.1/simple/?a=1&Access_Token=secret&b=2#c", "https://127.0.0.1/simple/?a=1&b=2#c"),
        ("https://127.0.0.1/a?X-Amz-Date=secret&X-Amz-Signature=secret", "https://127.0.0.1/a"),
        ("https://127.0.0.1/a?x=1;sig=secret", "https://127.0.0.1/a?x=1"),
        ("https://127.0.0.1/a#access_token=secret", "https://127.0.0.1/a"),
        ("https://127.0.0.1/simple;token=secret/a", "https://127.0.0.1/simple/a"),
        ("https://127.0.0.1/simple;a=1;sig=secret;b=2", "https://127.0.0.1/simple;a=1;b=2"),
        (f"https://127.0.0.1/ghp_secret{'4X' * 15}/simple", "https://127.0.0.1/simple"),
        (f"see https://127.0.0.1/glpat-secret{'4X' * 15}: why", "see https://127.0.0.1: why"),
        ("cannot read http:/user:secret@127.0.0.1/t/secret/a?token=secret: why", "cannot read http:/127.0.0.1/a: why"),
        ("http:/user:secret@127.0.0.1/a", "http:/127.0.0.1/a"),
        *(
            (f"https://127.0.0.1/a?{name}=secret&of=1", "https://127.0.0.1/a?of=1")
            for name in ("api_key", "apikey", "api-key", "key", "client_secret", "password", "passwd", "auth", "jwt")
        ),
    ],
)
def test_credentials_of_a_channel_are_removed_from_its_address(url: str, without: str) -> None:
    assert without_secrets(url) == without


@pytest.mark.thorough
@pytest.mark.parametrize(
    "url",
    [
        "",
        "conda-forge",
        "ssh://git@127.0.0.1/a",
        "git+ssh://git@127.0.0.1/a",
        "git+https://127.0.0.1/a/b@v1.2",
        "torch@https://127.0.0.1/torch-2-py3-none-any.whl#sha256=ab",
        "https://127.0.0.1/packages/source/t/tqdm/tqdm-4.67.1.tar.gz",
        "https://127.0.0.1/packages/source/t/tqdm",
        "https://127.0.0.1/packages/py3/t/torch-geometric/torch_geometric-2.6.1-py3-none-any.whl",
        "https://127.0.0.1/a?page=2&keyword=x&author=me&monkey=1&signed=no#egg=a&subdirectory=key",
        "https://***@127.0.0.1/t/***/channel?token=***",
        "127.0.0.1:5000/cuda:12.4@sha256:ab",
        "cuda:12.4@sha256:ab",
        "#token=1",
        "reqs/t/more/requirements.txt",
        "t/more/requirements.txt",
        "conda-forge/label/nightly",
        "https://conda.anaconda.org/conda-forge/linux-64/at-1.0-h1@2_0.conda",
        "https://127.0.0.1:8080/a@b/channel",
        "https://[::1]:8080/a@b/channel",
        "https://[::1]/a@b/channel",
        "https://127.0.0.1/start/tools/channel",
        "https://127.0.0.1/hf_transfer/hf_transfer-0.1.9-cp38-abi3-manylinux_2_17_x86_64.whl",
        "https://127.0.0.1/pypi-attestations/pypi_attestations-0.0.27-py3-none-any.whl",
        "https://127.0.0.1/simple;version=1/a",
        "alpha ; extra == 'token'",
        "https://127.0.0.1/t/",
        "file:///opt/t/channel",
        "file:/opt/t/channel",
        "/opt/t/channel",
        "./t/channel",
        "../t/me@home/channel",
        "~/t/channel",
        r"C:\t\me@home\channel",
        "C:/t/channel",
    ],
)
def test_an_address_without_secrets_is_unchanged(url: str) -> None:
    assert without_secrets(url) == url


WORDS = st.text(st.characters(codec="ascii", exclude_characters="/?#\\\\"))
ONE_WORD = st.text(st.sampled_from("aZ09!$%&()*+,-.:;<=>@[]^_{|}~"))
PATHS = st.sampled_from(["/t/secret", "/conda/t/secret/", "/t/secret/channel", "/a?token=secret", ""])


@given(
    st.tuples(st.sampled_from(["https://", "http://", "//"]), WORDS) | st.tuples(st.just(""), ONE_WORD),
    PATHS,
)
def test_no_secret_survives_and_a_second_pass_changes_nothing(login: tuple[str, str], path: str) -> None:
    once = without_secrets(f"{login[0]}{login[1]}:secret@127.0.0.1{path}")
    assert "secret" not in once
    assert without_secrets(once) == once


@given(
    st.sampled_from(["", "error: ", "pip install -i ", "--index-url=", "'", '"', "(", "[", "a @ ", "a@", "a, "]),
    st.sampled_from(["http://", "https://", "git+https://"]),
    ONE_WORD,
    PATHS,
    st.sampled_from(["", " answers", "' answers", '", "b": "c@d"', "\n    # me@127.0.0.1"]),
)
def test_no_secret_survives_within_a_text(before: str, scheme: str, user: str, path: str, after: str) -> None:
    text = without_secrets(f"{before}{scheme}{user}:secret@127.0.0.1{path}{after}")
    assert "secret" not in text
    assert text.startswith(f"{before}{scheme}127.0.0.1")
    assert text.endswith(after)


@pytest.mark.parametrize(
    "text",
    [
        "# from https://mirror/simple by me@host\n",
        "https://127.0.0.1:8080 does not answer: ask me@127.0.0.1",
        '{"a": "https://127.0.0.1", "b": "c@d"}',
        '["https://127.0.0.1","c:d@e"]',
        "FROM nvidia/cuda:12.4@sha256:ab",
        "numpy==2.0 --hash=sha256:ab  # token=ab",
        "error: write to me@127.0.0.1",
        "see \\\\server\\t\\share",
    ],
)
def test_a_text_without_secrets_is_unchanged(text: str) -> None:
    assert without_secrets(text) == text


@given(st.text(st.sampled_from("\"\\\\@:/?=&#t \n'")), PATHS)
@example("\\", "/a?token=secret")
def test_a_document_of_json_stays_one(text: str, path: str) -> None:
    document = json.dumps({"a": [f"https://127.0.0.1{path}{text}", text]})
    assert json.loads(without_secrets(document))["a"]


def test_addresses_within_addresses_have_no_secrets() -> None:
    assert without_secrets("https://a/x?next=https://u:p@b/c") == "https://a/x?next=https://b/c"
    assert without_secrets("https://a/b;https://u:p@c/d,https://e") == "https://a/b;https://c/d,https://e"
