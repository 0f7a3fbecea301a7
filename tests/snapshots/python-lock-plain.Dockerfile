# syntax=docker/dockerfile:1
# Made by envsolve VERSION:
#   envsolve lock numpy
# For: linux-64
# Resolved for: Python 3.11.7, glibc 2.35
#
# Build:  docker build --platform linux/amd64 -t NAME - < THIS_FILE  (BuildKit; sends no other file)
#   if an index needs a login, add --secret id=netrc,src=$HOME/.netrc, which no layer stores
# Run:    docker run --rm -it NAME
# Test:   docker run --rm NAME sh -c '/usr/local/bin/python -m venv /tmp/v && /tmp/v/bin/pip install -q $0 && /tmp/v/bin/envsolve validate --python /usr/local/bin/python' envsolve@$ENVSOLVE_URL
#   ENVSOLVE_URL is the address of a .zip of envsolve. It is on no package index: do not install it by its name.
# Extend: FROM NAME in your own Dockerfile, because envsolve overwrites this one. A .dockerignore next to it
#   excludes files that the image does not need (.git, .venv, data, checkpoints).
#
# [tool.envsolve]
# schema_version = 1
# envsolve_version = "VERSION"
# command = "envsolve lock numpy"
# request = ["numpy"]
# options = {}
# exclude_newer = "2026-10-01T00:00:00Z"
# platform = "linux-64"
# python = "3.11.7"
# glibc = "2.35"
# packages_digest = "sha256:a8ee81c6cb330dd143aa4ea7adbf0a57c10461d473bb19e768a049c17a0c792d"

# Python 3.11 on Debian bookworm, glibc 2.36. This tag may get another image.
# For a fixed image, write python@sha256:... (docs/containers.md).
FROM python:3.11-slim-bookworm

RUN useradd --create-home --uid 1000 user

COPY <<"REQUIREMENTS" /opt/requirements.txt
--index-url https://index.example.org/simple
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

USER 1000
WORKDIR /home/user
CMD ["python"]
