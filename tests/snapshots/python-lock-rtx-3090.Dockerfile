# syntax=docker/dockerfile:1
# Made by envsolve VERSION from the compatibility matrix of 2026-11-01:
#   envsolve -f pytorch==2.14.1 --gpu 'RTX 3090' --driver 580.65.06 --source pytorch
# For: linux-64, NVIDIA GeForce RTX 3090 (8.6)
# Needs: NVIDIA driver 580.65.06 or newer
# Resolved for: Python 3.11.7, glibc 2.35
#
# Build:  docker build --platform linux/amd64 -t NAME - < THIS_FILE  (BuildKit; sends no other file)
#   if an index needs a login, add --secret id=netrc,src=$HOME/.netrc, which no layer stores
# Run:    docker run --rm -it --gpus all NAME
#   the driver is the host's, through NVIDIA's container toolkit; CUDA is in the wheels, not in the base
# Test:   docker run --rm --gpus all NAME sh -c '/usr/local/bin/python -m venv /tmp/v && /tmp/v/bin/pip install -q $0 && /tmp/v/bin/envsolve validate --python /usr/local/bin/python' envsolve@$ENVSOLVE_URL
#   ENVSOLVE_URL is the address of a .zip of envsolve. It is on no package index: do not install it by its name.
# Extend: FROM NAME in your own Dockerfile, because envsolve overwrites this one. A .dockerignore next to it
#   excludes files that the image does not need (.git, .venv, data, checkpoints).
#
# [tool.envsolve]
# schema_version = 1
# envsolve_version = "VERSION"
# command = "envsolve -f pytorch==2.14.1 --gpu 'RTX 3090' --driver 580.65.06 --source pytorch"
# request = ["torch==2.14.1", "numpy", "own-kernels @ https://files.example.org/packages/own_kernels.whl"]
# options = {}
# matrix_date = "2026-11-01"
# platform = "linux-64"
# python = "3.11.7"
# glibc = "2.35"
# minimum_driver = "580.65.06"
# compute_capabilities = ["8.6"]
# cuda = "13.0"
# cudnn = "9.24.0.43"
# frameworks = [
#     { framework = "pytorch", version = "2.14.1", package = "torch", source = "pytorch", build = "cu130" },
# ]
# notes = ["a note"]
# packages_digest = "sha256:49848eb05138e889df8f61d345397b589e279eba4de88922ac29315f28d95d75"

# Python 3.11 on Debian bookworm, glibc 2.36. This tag may get another image.
# For a fixed image, write python@sha256:... (docs/containers.md).
FROM python:3.11-slim-bookworm

RUN useradd --create-home --uid 1000 user

COPY <<"REQUIREMENTS" /opt/requirements.txt
--extra-index-url https://cuda.example.org/whl/cu130

filelock==3.20.0 \
    --hash=sha256:5555555555555555555555555555555555555555555555555555555555555555
    # via torch
numpy==2.3.5 \
    --hash=sha256:2222222222222222222222222222222222222222222222222222222222222222 \
    --hash=sha256:3333333333333333333333333333333333333333333333333333333333333333 \
    --hash=sha512:44444444444444444444444444444444444444444444444444444444444444444444444444444444444444444444444444444444444444444444444444444444
    # via
    #   -r requirements.in
    #   torch
own-kernels @ https://files.example.org/packages/own_kernels-0.4-py3-none-any.whl \
    --hash=sha256:6666666666666666666666666666666666666666666666666666666666666666
    # via -r requirements.in
torch==2.14.1+cu130 \
    --hash=sha256:1111111111111111111111111111111111111111111111111111111111111111
    # via -r requirements.in
    # because: pytorch 2.14.1 (pytorch, cu130) holds code for 8.6
    # from https://cuda.example.org/whl/cu130
REQUIREMENTS

RUN --mount=type=cache,target=/root/.cache/pip \
    --mount=type=secret,id=netrc,target=/root/.netrc \
    pip install --require-hashes --no-deps --only-binary :all: -r /opt/requirements.txt

LABEL envsolve.minimum-driver="580.65.06" envsolve.cuda="13.0"
ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility
USER 1000
WORKDIR /home/user
CMD ["python"]
