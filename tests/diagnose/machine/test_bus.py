"""The GPUs on the bus: the doctor sees those of the detection, with links inside of a recorded machine."""

from __future__ import annotations

from pathlib import Path

from envsolve.diagnose.machine.bus import gpus_on_bus
from envsolve.host.pci import PciDevice, PciProbe
from tests.diagnose.machine.recorded import Case, Content, gpu_on_bus, survey_of

FILES: dict[str, Content] = {
    **gpu_on_bus("2684", "nvidia", "0000:01:00.0"),
    **gpu_on_bus("1DB5", None, "0000:02:00.0"),
    **gpu_on_bus("20b0", "vfio-pci", "0000:03:00.0"),
    **gpu_on_bus("22ba", "snd_hda_intel", "0000:01:00.1"),
    "sys/bus/pci/devices/0000:01:00.1/class": "0x040300\n",
    **gpu_on_bus("9a49", "i915", "0000:00:02.0"),
    "sys/bus/pci/devices/0000:00:02.0/vendor": "0x8086\n",
}


def test_display_controllers_of_nvidia_are_reported_with_their_drivers(tmp_path: Path) -> None:
    assert gpus_on_bus(survey_of(tmp_path, Case(FILES)).files) == (
        PciDevice("0000:01:00.0", "2684", "nvidia"),
        PciDevice("0000:02:00.0", "1db5", None),
        PciDevice("0000:03:00.0", "20b0", "vfio-pci"),
    )


def test_the_detection_counts_as_many(tmp_path: Path) -> None:
    on_bus = gpus_on_bus(survey_of(tmp_path, Case(FILES)).files)
    reading = PciProbe(tmp_path).read()
    assert reading is not None
    assert reading.gpus is not None
    assert sum(gpu.count for gpu in reading.gpus) == len(on_bus)
