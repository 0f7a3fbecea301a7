"""Facts about all libraries of a package together, and how much of them is read."""

from __future__ import annotations

from collections.abc import Iterator

from envsolve.binary.package_facts import PackageFacts, brings_cuda, facts_in
from envsolve.model.fact import Evidence, EvidenceKind
from envsolve.model.need import parse_need
from tests.binary.device_library import library_for_torch
from tests.scripts.fat_binary import fat_binary

RUNTIME = b"\0CUDA driver version is insufficient for CUDA runtime version\0"


def facts(members: dict[str, bytes], budget: int = 10**9, *, named: bool = False) -> PackageFacts:
    def chunks(name: str) -> Iterator[bytes]:
        yield members[name]

    return facts_in({name: len(content) for name, content in members.items()}, chunks, budget, named=named)


def test_libraries_of_a_wheel_form_one_set() -> None:
    found = facts({
        "a/_C.abi3.so": fat_binary((80,)) + b"\0libcudart.so.12\0",
        "a/libb.so.2": fat_binary((90,), (90,)) + b"numpy.core._multiarray_umath",
        "a/readme.txt": fat_binary((50,)),
    })  # fmt: skip
    assert found == PackageFacts(("8.0", "9.0"), ("9.0",), (12,), None, 1, ptx_cuda="12.4")


def test_a_cuda_library_in_the_wheel_satisfies_the_libraries_that_load_it() -> None:
    for bundled in ("a.libs/libcublas-5f3a.so.12", "a/lib/libcudart.so.12", "a/bin/cudart64_12.dll"):
        assert facts({"a/_C.so": b"\0libcublas.so.12\0", bundled: b""}).cuda == ()
    assert facts({"a/_C.so": b"\0libcublas.so.12\0", "a/libcublasless.so": b""}).cuda == (12,)


def test_small_libraries_are_read_first_and_skipped_ones_are_counted() -> None:
    members = {"a/large.so": b"\0libcudart.so.13\0" + bytes(100), "a/small.so": b"\0libcudart.so.12\0"}
    found = facts(members, budget=60)
    assert (found.cuda, found.unread) == ((12,), 116 + 1)


def test_only_libraries_that_name_cuda_are_read_if_nothing_else_does() -> None:
    members = {"a/core.so": b"\0libcudart.so.13\0", "a/lib_cuda_kernels.so": b"\0libcudart.so.12\0"}
    members["a/libicudata.so.66"] = b"\0libcudart.so.11.0\0"
    assert facts(members, named=True).cuda == (12,)


def test_the_newest_linked_runtime_counts() -> None:
    old, new = (RUNTIME + fat_binary((), (80,), isa=(isa, 0)) for isa in (8, 9))
    assert facts({"a.so": old, "b.so": new, "c.so": b""}).linked_cuda == 13


def test_a_runtime_in_the_wheel_needs_a_driver_for_it() -> None:
    for bundled in ("a.libs/libcudart.3eda8113.so.13", "a/lib/libcudart-c64a25f3.so.13.0.96", "a/cudart64_13.dll"):
        assert facts({"a/_C.so": b"", bundled: b""}).linked_cuda == 13
    assert facts({"a/_C.so": b"", "a/lib/libcudart_static.so.13": b""}).linked_cuda is None


def test_a_library_of_nvidia_in_the_wheel_says_nothing_about_its_kernels() -> None:
    members = {"a/_C.so": fat_binary((80,)), "a.libs/libnvjpeg.36e11081.so.13": fat_binary((50, 90), (120,))}
    assert facts(members) == PackageFacts(("8.0",))


def test_a_wheel_that_requires_nvidia_packages_without_a_runtime_brings_no_cuda() -> None:
    brings = {"nvidia-cuda-runtime-cu12", "nvidia-cublas", "nvidia-cudnn-cu12", "cuda-toolkit"}
    assert {
        it for it in (*brings, "nvidia-cudnn-frontend", "nvidia-ml-py", "cuda-bindings") if brings_cuda(it)
    } == brings


def test_code_in_unread_files_is_not_reported_missing() -> None:
    evidence = Evidence(EvidenceKind.WHEEL, "a.whl", "2026-11-26")
    whole = PackageFacts(("8.0",), (), (12,)).build_facts("a", "1.0", [], evidence)
    part = PackageFacts(("8.0",), (), (12,), unread=5).build_facts("a", "1.0", [], evidence)
    assert whole is not None
    assert part is not None
    assert (whole.code is None, part.code is None) == (False, True)
    assert whole.cuda_text == part.cuda_text == "CUDA 12"
    assert PackageFacts(cuda=(12,)).build_facts("a", "1.0", ["nvidia-cublas-cu12"], evidence) is None


def test_the_pytorch_it_was_compiled_for_counts_if_the_metadata_requires_one() -> None:
    evidence, torch = Evidence(EvidenceKind.WHEEL, "a.whl", "2026-11-26"), parse_need("torch==2.8.*")
    found = PackageFacts(numpy=1).build_facts("a", "1.0", ["torch"], evidence, torch)
    assert found is not None
    assert list(map(str, found.requires)) == ["numpy<2", "torch==2.8.*"]
    assert PackageFacts().build_facts("a", "1.0", ["click"], evidence, torch) is None  # as in open3d


def test_a_library_for_one_pytorch_among_several_says_nothing() -> None:
    one, other = (library_for_torch(needs=(it,)) for it in ("_ZN3c103oneEv", "_ZN3c105otherEv"))
    assert facts({"a/lib_torch27-cuda.so": one, "a/adapter_pytorch_2.1.0.so": one, "a/_C.so": other}).torch == (
        "_ZN3c105otherEv",
    )
