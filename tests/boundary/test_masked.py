"""Secrets are masked wherever they are, and nothing else is."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
import tomli
from hypothesis import given, settings
from hypothesis import strategies as st

from envsolve.boundary.secrets import HIDDEN, masked

PLACES = [
    *("https://user:{}@example.org/simple", "pip install git+https://{}@github.com/a/b"),
    *("http://us:pa/{}@proxy:8080/", "https://conda.anaconda.org/t/{}/channel/linux-64"),
    *("conda.anaconda.org/t/tk-{}/channel", "GET https://example.org/x?a=1&X-Amz-Signature={}&b=2"),
    *("https://example.org/?sig={}", "https://example.org/?key={}#top"),
    *("https://example.org/#access_token={}", "Authorization: Bearer {}", "authorization: Basic {}=="),
    *("curl -H 'Authorization: token {}' https://example.org", "Proxy-Authorization: {}"),
    *("sent Bearer {}", "Cookie: a=b; session={}", "x-api-key: {}", "PRIVATE-TOKEN: {}", "password={}"),
    *("password: '{}'", 'password = "a {} b"', "Passphrase: {}", "token: {}", '{"api_key": "{}"}'),
    *("{'password': 'first {}'}", '{\\"auth_token\\": \\"{}\\"}', '"auth": "{}"', "--token {}"),
    *("--token={}", "--api-key '{}'", "--hf-token {}", "HF_TOKEN={}", "export AWS_SECRET_ACCESS_KEY={}"),
    *("WANDB_API_KEY: {}", "MY_PASS={}", "MYSQL_PWD={}", "Server=x;Pwd={};Database=y"),
    *("machine example.org login me password {}", "client_secret={}", "TWINE_PASSWORD={}"),
    *("docker login nvcr.io -u '$oauthtoken' -p {}", "podman login -p '{}' example.org", "sshpass -p{} ssh host"),
    *("wandb: api key {}", "wandb login {}", "wandb login --relogin {}", "your API key is {}"),
    *("curl -fsSL -u me:{} https://example.org", 'curl --user "me:{}" example.org', "curl -ume:{} example.org"),
]
SHAPES = [
    *("ghp_{}", "github_pat_{}", "glpat-{}", "hf_{}", "sk-{}", "sk-proj-{}", "sk-ant-api03-{}"),
    *("pypi-{}", "npm_{}", "xoxb-12-{}", "nvapi-{}", "AIza{}abcde", "eyJ{0}.{0}.{0}", "dckr_pat_{}"),
]
SECRETS = st.text(alphabet="ABCDEFGHJKMNPQRSTUVWXYZabcdefghjkmnpqrstuvwxyz23456789", min_size=16, max_size=40).filter(
    lambda it: any(map(str.isdigit, it)) and any(map(str.isupper, it)) and any(map(str.islower, it))
)


def planted(place: str, secret: str) -> str:
    """``place`` with ``secret`` inserted."""
    return place.replace("{0}", secret).replace("{}", secret)


ORDINARY = [
    *("sha256:" + "a1" * 32, "_ZN3c1021throwNullDataPtrErrorEv", "torch==2.1.0+cu118"),
    *("libcudart.so.11.0", "/home/t/foo/bar"),
    "https://download.pytorch.org/whl/cu118/torch-2.1.0%2Bcu118-cp310-linux_x86_64.whl#sha256=" + "a1" * 32,
    *("file:///t/abc/def", "git+https://github.com/a/b@v1.2", "ssh://git@github.com/x"),
    *("http://localhost:4873/@scope/pkg@1.0", "http://[::1]:8080/a@b", "eos_token='</s>'"),
    *("pad_token_id: 0", "tokens: 512", "token: 1234567890", "tokenizer: bert-base-uncased-very-long"),
    *("max_token=2048", "KeyError: 'key: model.layers'", "from hf_hub_download and hf_transfer"),
    *("npm_config_registry=abc", "sk-learn-contrib-foo-bar", "unexpected token: <end>"),
    *("SSH_AUTH_SOCK=/tmp/x", "PWD=/home/x", "OLDPWD=/home/y", "auth: /etc/foo"),
    *("GOOGLE_APPLICATION_CREDENTIALS=/a/b.json", "the option --password is deprecated", "api_key=None"),
    *("pypi-simple, pypi-attestations", "0x00007f3b2c1d4e5f", "GPU-8f6b5d3c-1a2b-3c4d-5e6f-7a8b9c0d1e2f"),
    *("CUDA_VISIBLE_DEVICES=0,1", "secrets and passwords are kept"),
    *("wandb: Appending key for api.wandb.ai to your netrc file", "set the API key in a variable"),
    *("docker run -p 8888:8888 -u 1000:1000 image", "mkdir -p /a/b", "curl -o a:b https://example.org", "login: -px"),
]


@pytest.mark.thorough
@pytest.mark.parametrize("place", PLACES + SHAPES)
@settings(max_examples=10)
@given(secret=SECRETS)
def test_a_secret_is_masked(place: str, secret: str) -> None:
    found = masked(planted(place, secret))
    assert secret not in found
    assert HIDDEN in found
    assert masked(found) == found


@pytest.mark.thorough
@pytest.mark.parametrize("before", ["", "2024-05-01T12:00:00Z ", "E: [", '"', "'"])
@given(place=st.sampled_from(PLACES + SHAPES), secret=SECRETS)
def test_a_secret_is_masked_amid_other_text(before: str, place: str, secret: str) -> None:
    assert secret not in masked(f"{before}{planted(place, secret)} and more")


@pytest.mark.thorough
@pytest.mark.parametrize("text", ORDINARY)
def test_nothing_else_is_masked(text: str) -> None:
    assert masked(text) == text


@pytest.mark.thorough
def test_texts_of_real_failures_are_unchanged() -> None:
    cases = sorted((Path(__file__).parents[1] / "symptoms").glob("**/*.toml"))
    texts = {it.name: str(tomli.loads(it.read_text("utf-8")).get("text", "")) for it in cases}
    assert len(texts) > 100
    assert [name for name, text in texts.items() if masked(text) != text] == []


def test_text_around_a_secret_stays() -> None:
    assert (
        masked("pip install -i https://me:abc@example.org/simple torch")
        == "pip install -i https://***@example.org/simple torch"
    )
    assert masked("HF_TOKEN=abc python x.py") == "HF_TOKEN=*** python x.py"
    assert masked('{"password": "a b", "user": "me"}') == '{"password": "***", "user": "me"}'
    assert masked("https://h/x?a=1&token=abc&b=2#c") == "https://h/x?a=1&token=***&b=2#c"


@given(
    st.lists(
        st.sampled_from(
            [*PLACES, *SHAPES, "://", "@", "'", '"', "\\", "=", ": ", "token", "password", " ", "a", "/t/"]
        ),
        max_size=8,
    )
)
def test_masking_twice_is_masking_once(parts: list[str]) -> None:
    text = planted("".join(parts), "Zk3jX9qLmN0pR7tV")
    assert masked(masked(text)) == masked(text)


HOSTILE = [
    *("://", "://a:", "?token", "@", "password=", 'password="', "eyJ", "eyJaaaaaaaa.", "-", "--token"),
    *("&", "password ", "sk-ab-", "bearer ", "login a password ", "password" + " " * 50, "a", "/t/", "_"),
    *("auth", "token: ", '"', "\\", "cookie: a;"),
    *("login ", "login -", "login -p", "curl ", "curl -u", "curl -ua:", "curl -u a"),
]


@pytest.mark.thorough
@pytest.mark.parametrize("part", HOSTILE)
def test_masking_is_linear(part: str) -> None:
    def seconds(size: int) -> float:
        text = part * (size // len(part))
        tries = []
        for _ in range(3):
            start = time.process_time()
            masked(text)
            tries.append(time.process_time() - start)
        return min(tries)

    assert seconds(1 << 20) < 10 * seconds(1 << 18) + 0.2
