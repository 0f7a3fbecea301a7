"""Which PyTorch a library was compiled for, by the symbols that it needs."""

from __future__ import annotations

import pytest
from packaging.version import Version

from envsolve.matrix.torch_symbols import SymbolRow, TorchSymbols, readable

TABLE = TorchSymbols([
    SymbolRow((Version("2.8"),), ("of-8",)),
    SymbolRow((Version("2.8"), Version("2.9")), ("of-8-and-9",)),
    SymbolRow((Version("2.9"), Version("2.10"), Version("2.11")), ("from-9",)),
    SymbolRow((Version("2.8"), Version("2.9"), Version("2.11")), ("not-10",)),
    SymbolRow(tuple(map(Version, ("2.8", "2.9", "2.10", "2.11"))), ("of-all",)),
])  # fmt: skip


@pytest.mark.parametrize(
    ("names", "torch"),
    [
        (("of-8",), "torch<2.9"),
        (("of-8-and-9", "from-9"), "torch>=2.9,<2.10"),
        (("from-9", "of-all"), "torch>=2.9"),
        (("not-10",), "torch!=2.10.*"),
        (("not-10", "from-9"), "torch>=2.9,!=2.10.*"),
        (("of-8", "from-9"), None),  # libraries for several
        (("of-all", "of-none-that-is-listed"), None),
        ((), None),
    ],
)
def test_releases_with_all_symbols_are_found(names: tuple[str, ...], torch: str | None) -> None:
    found = TABLE.need_of(names)
    assert (None if found is None else str(found)) == torch


def test_the_reason_names_a_missing_symbol_for_each_neighbour() -> None:
    found = TABLE.need_of(["of-8-and-9", "from-9", "of-all"])
    assert found is not None
    assert "PyTorch 2.8 does not have  (from-9) and PyTorch 2.10 does not have  (of-8-and-9)" in found.because


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("_ZN3c104cuda9SetDeviceEab", "c10::cuda::SetDevice"),
        ("_ZNK3c1010TensorImpl4sizeEv", "c10::TensorImpl::size"),
        ("_ZN3c105ErrorC2ENS_14SourceLocationESs", "c10::Error::Error"),
        ("_ZN3c105ErrorD1Ev", "c10::Error::~Error"),
        ("_ZTIN3c105ErrorE", "the type information of c10::Error"),
        ("_ZTVN3c1019UndefinedTensorImplE", "the virtual table of c10::UndefinedTensorImpl"),
        ("_ZNK2at10TensorBase8data_ptrIfEEPT_v", "at::TensorBase::data_ptr"),
        ("_ZN3c106detail14torchCheckFailEPKcS2_jRKSs", "c10::detail::torchCheckFail"),
        ("_ZN3c10lsERSoNS_10DeviceTypeE", "c10"),
    ],
)
def test_a_mangled_name_is_demangled(symbol: str, name: str) -> None:
    assert readable(symbol) == f"{name} ({symbol})"


def test_a_long_name_is_cut() -> None:
    assert readable("_ZN3c103fooE" + "v" * 100) == f"c10::foo (_ZN3c103fooE{'v' * 48}...)"
