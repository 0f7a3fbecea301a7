"""Makes job.schema.json from the models of the Kubernetes client (Apache-2.0), which are made from the API's schema.

    uv run --with kubernetes==37.0.2 --no-project tests/fleet/kubernetes/make_job_schema.py

A version of the client is one of Kubernetes: 37 is 1.37. Only the types of which a manifest of envsolve has a value are
there, each with all of its keys and no others; a value of another type may be anything. Null is left out.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import kubernetes  # type: ignore[import-not-found]
from kubernetes.client.models import V1Job  # type: ignore[import-not-found]

TYPES = (
    "V1Affinity",
    "V1Container",
    "V1EnvVar",
    "V1JobSpec",
    "V1NodeAffinity",
    "V1NodeSelector",
    "V1NodeSelectorRequirement",
    "V1NodeSelectorTerm",
    "V1ObjectMeta",
    "V1PodSpec",
    "V1PodTemplateSpec",
    "V1ResourceRequirements",
    "V1Toleration",
)


def small(schema: Any) -> Any:
    """A schema without prose, in which types that are left out may be anything."""
    if isinstance(schema, list):
        return [small(it) for it in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema and schema["$ref"].rpartition("/")[2] not in TYPES:
        return True
    if "anyOf" in schema:
        (only,) = (it for it in schema["anyOf"] if it != {"type": "null"})
        return small(only)
    found = {
        key: small(it) for key, it in schema.items() if key not in ("title", "description", "default", "properties")
    }
    if "properties" in schema:
        found["properties"] = {key: small(it) for key, it in schema["properties"].items()}
        found["additionalProperties"] = False
    return found


if __name__ == "__main__":
    whole = V1Job.model_json_schema(by_alias=True)
    definitions = whole.pop("$defs")
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$comment": f"made by make_job_schema.py from the Python client of Kubernetes {kubernetes.__version__}",
        **small(whole),
        "$defs": {it: small(definitions[it]) for it in TYPES},
    }
    Path(__file__).with_name("job.schema.json").write_text(json.dumps(schema, separators=(",", ":")) + "\n")
