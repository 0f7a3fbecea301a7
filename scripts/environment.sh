# Sourced by the scripts beside it: make_environment DIR STAMP_FILE PIP_ARGUMENTS...
# Makes a virtual environment once, and again whenever the stamp file changes. Everything it says goes to stderr.

fail() {
    printf 'error: %s\n  %s\n' "$1" "$2" >&2
    exit 3
}

find_python() {
    for candidate in "${ENVSOLVE_PYTHON:-}" python3 python3.14 python3.13 python3.12 python3.11 python; do
        [ -n "$candidate" ] || continue
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            printf '%s\n' "$candidate"
            return
        fi
    done
    fail no-python "Python 3.11 or newer is needed; set ENVSOLVE_PYTHON to one"
}

make_environment() {
    environment=$1 stamp_file=$2
    shift 2
    bin=$environment/bin
    [ -d "$environment/Scripts" ] && bin=$environment/Scripts
    fresh=no
    stamp=$(cksum "$stamp_file")
    if [ -f "$environment/stamp" ] && [ "$(cat "$environment/stamp")" = "$stamp" ]; then
        return
    fi
    python=$(find_python) || exit 3
    printf 'setting up %s (once)\n' "${environment##*/}" >&2
    rm -rf "$environment"
    "$python" -m venv "$environment" >&2 || fail no-venv "$python -m venv failed; on Debian and Ubuntu: apt install python3-venv"
    [ -d "$environment/Scripts" ] && bin=$environment/Scripts
    "$bin/python" -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1' >&2 &&
        "$bin/python" -m pip install --quiet "$@" >&2 || fail setup-failed "pip could not install what envsolve needs; its message is above"
    printf '%s\n' "$stamp" >"$environment/stamp"
    fresh=yes
}
