"""Commands of pip for packages that belong together."""

from __future__ import annotations

from envsolve.model.release import Release


def torch_command(release: Release, *, again: bool = False) -> str:
    """Pip's command for a wheel of torch and what belongs to it; ``again`` where another build of it is installed."""
    companions = dict(release.companions)
    others = [
        f"{it}{companions[it]}" for it in ("torchvision", "torchaudio") if companions.get(it, "").startswith("==")
    ]
    index = f"https://download.pytorch.org/whl/{release.build}"
    forced = "--force-reinstall " if again else ""
    return f"pip install {forced}{' '.join((f'torch=={release.version}', *others))} --index-url {index}"
