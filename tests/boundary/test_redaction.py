"""What is removed from a text before it is posted in public, and what stays."""

from __future__ import annotations

import pytest

from envsolve.boundary.redaction import redaction

ENVIRON = {"HOME": "/home/ada", "USER": "ada", "HOSTNAME": "engine-7.works.example.org"}


def cleaned(text: str, **more: str) -> str:
    return redaction({**ENVIRON, **more}, ["engine-7"], {"/srv/ml/env": "ENV"})(text)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("/home/ada/env/lib.so is empty", "~/env/lib.so is empty"),
        ("/home/adam/lib.so", "/home/***/lib.so"),
        ("/home/grace/x and /Users/grace/x", "/home/***/x and /Users/***/x"),
        (r"C:\Users\Grace Hopper\x", r"C:\Users\***\x"),
        ("/mnt/c/Users/grace/x", "/mnt/c/Users/***/x"),
        ("/scratch/ada/cuda", "/scratch/USER/cuda"),
        ("job_ada_1", "job_USER_1"),
        ("Canada, radar", "Canada, radar"),
        ("engine-7.works.example.org and engine-7", "HOST and HOST"),
        ("/srv/ml/env/bin/python", "ENV/bin/python"),
        ("/srv/ml/env2", "/srv/ml/env2"),
        ("http://proxy.example.org:3128/x", "http://HOST/x"),
        ("GPU-01234567-89ab-cdef-0123-456789abcdef", "GPU-UUID"),
        ("write to ada.lovelace@example.org", "write to MAIL"),
        ("HF_TOKEN=hf_0123456789abcdefABCDEF", "HF_TOKEN=***"),
        ("/usr/local/cuda-12.8/lib64", "/usr/local/cuda-12.8/lib64"),
        ("torch 2.6.0+cu124", "torch 2.6.0+cu124"),
    ],
)
def test_names_of_users_and_machines_are_removed_and_the_rest_stays(text: str, left: str) -> None:
    assert cleaned(text) == left


@pytest.mark.parametrize("name", ["root", "gpu", "cuda", "x"])
def test_generic_names_do_not_spoil_a_text(name: str) -> None:
    text = "root cannot use the GPU with CUDA 12.8 on x 86"
    assert cleaned(text, USER=name, HOSTNAME=name) == text


def test_a_clean_text_is_unchanged() -> None:
    once = cleaned("/home/ada and /home/grace on engine-7 at https://ada@engine-7/x")
    assert cleaned(once) == once
