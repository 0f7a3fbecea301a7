"""The shared libraries that a Linux library requires (DT_NEEDED)."""

from __future__ import annotations

import io

from elftools.common.exceptions import ELFError
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile


def needed_libraries(content: bytes) -> list[str]:
    """Return the names in DT_NEEDED, in order; none if it is not an ELF file or links to nothing."""
    try:
        sections = list(ELFFile(io.BytesIO(content)).iter_sections())
    except ELFError:
        return []
    dynamic = (section for section in sections if isinstance(section, DynamicSection))
    return [str(getattr(tag, "needed")) for section in dynamic for tag in section.iter_tags("DT_NEEDED")]  # noqa: B009
