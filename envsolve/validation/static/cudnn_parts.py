"""What libcudnn.so opens by name."""

from __future__ import annotations

CUDNN_PARTS = {
    "9": ("graph", "ops", "cnn", "adv", "heuristic", "engines_precompiled", "engines_runtime_compiled"),
    "8": ("ops_infer", "cnn_infer", "adv_infer"),
}
"""By major version (DT_NEEDED and strings of the wheels of 8.9.7 and 9.10.2)."""
