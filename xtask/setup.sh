#!/usr/bin/env bash
# Installs what the tests need and this machine lacks, with apt-get (Debian 12, Ubuntu 24.04 or newer).
# `xtask/setup.sh bench` does the same for the benchmark.
set -euo pipefail
PATH=$PATH:/usr/sbin:$(printf '%s:' /usr/lib/postgresql/*/bin)

# How long to wait for another process that is using the package manager.
lock_timeout_secs=600

# need PACKAGE COMMAND…: the package is missing if the command fails.
missing=()
need() {
    local package=$1
    shift
    "$@" >/dev/null 2>&1 || missing+=("$package")
}
has() { command -v "$1"; }

find_missing() {
    missing=()
    need postgresql has initdb
    need python3 has python3
    need python3-venv python3 -c 'import ensurepip, venv'
    if [[ ${1:-} == bench ]]; then
        need wrk has wrk
        need nginx-light has nginx
        return
    fi
    need curl has curl
    need git has git
    need jq has jq
    need haproxy has haproxy
    need pgbouncer has pgbouncer
    need valgrind has valgrind
    need strace has strace
    need libfaketime ls -d /usr/lib/*/faketime/libfaketimeMT.so.1
    # Vite needs Node.js 20.19.
    need nodejs node -e 'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 20 || (a === 20 && b >= 19) ? 0 : 1)'
    need npm has npm
    need chromium has chromium
    need gcc-mingw-w64-x86-64 has x86_64-w64-mingw32-gcc
    need wine64 ls /usr/lib/wine/wine64
    # The standard library for Windows, from Debian. Elsewhere: `rustup target add x86_64-pc-windows-gnu`.
    if [[ ! -d $(rustc --print target-libdir --target x86_64-pc-windows-gnu) ]]; then
        need rustc-web ls /usr/bin/rustc
        need cargo-web ls /usr/bin/cargo
        need rust-web-src ls /usr/lib/rustlib/src/rust/library/std
    fi
    need r-base-core has Rscript
    need r-cran-httr2 Rscript -e 'library(httr2)'
    need r-cran-jsonlite Rscript -e 'library(jsonlite)'
}

as_root() {
    if [[ $(id -u) == 0 ]]; then "$@"; else sudo "$@"; fi
}

# `apt-get update` does not wait for its lock by itself, so it is repeated while the lock is taken.
update() {
    local output deadline=$((SECONDS + lock_timeout_secs))
    until output=$(as_root apt-get update 2>&1); do
        if [[ $output != *"Could not get lock"* ]] || ((SECONDS > deadline)); then
            echo "$output" >&2
            return 1
        fi
        echo 'waiting for another process that is using apt'
        sleep 5
    done
}

cargo fmt --version >/dev/null || { echo 'error: cargo fmt is missing; run `rustup component add rustfmt`' >&2; exit 1; }
cargo clippy --version >/dev/null || { echo 'error: cargo clippy is missing; run `rustup component add clippy`' >&2; exit 1; }

find_missing "$@"
if ((${#missing[@]} == 0)); then
    echo 'nothing to install'
    exit
fi
echo "installing: ${missing[*]}"
if ! command -v apt-get >/dev/null; then
    echo "error: no apt-get on this machine; install these yourself: ${missing[*]}" >&2
    exit 1
fi
update
as_root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=$lock_timeout_secs \
    -qq install --yes --no-install-recommends "${missing[@]}"
find_missing "$@"
if ((${#missing[@]} > 0)); then
    echo "error: installed, but not found or too old: ${missing[*]}" >&2
    exit 1
fi
