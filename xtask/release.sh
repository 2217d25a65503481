#!/usr/bin/env bash
# Builds what is published for this system into target/release-files, and tries each file where nothing else is installed.
# On Linux: the executable, the Debian package, the Python wheel, the container image, the list of components. On macOS and
# Windows: the executable and the wheel. The same commit gives the same bytes, in whichever folder it is built.
set -euo pipefail
cd "$(dirname "$0")/.."

root=$PWD
target=${CARGO_TARGET_DIR:-$root/target}
files=$target/release-files
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH

grep -q "^## $version" CHANGELOG.md || echo "note: CHANGELOG.md has no section ## $version yet"

case $(uname -s) in
Linux) triple=x86_64-unknown-linux-gnu name=linux-x86_64 tag=py3-none-manylinux2014_x86_64 exe=batchscan ;;
Darwin) triple=$(uname -m | sed s/arm64/aarch64/)-apple-darwin name=macos-$(uname -m) exe=batchscan
    tag=py3-none-macosx_11_0_$(uname -m) ;;
*) triple=x86_64-pc-windows-msvc name=windows-x86_64 tag=py3-none-win_amd64 exe=batchscan.exe ;;
esac

# Paths of this machine do not belong into the files. On Linux everything is linked statically: the executable runs on any
# distribution, and in an empty container.
cargo_home=${CARGO_HOME:-$HOME/.cargo}
flags= c_flags=
for map in "$root=/batchscan" "$target=/target" "$cargo_home=/cargo"; do
    flags+=" --remap-path-prefix=$map"
    c_flags+=" -ffile-prefix-map=$map"
done
if [ "$name" = linux-x86_64 ]; then
    flags+=" -C target-feature=+crt-static"
    export CFLAGS=$c_flags
fi
RUSTFLAGS=$flags cargo build --locked --profile dist --package batchscan --target "$triple"
built=$target/$triple/dist/$exe

rm -rf "$files"
mkdir -p "$files"

# An archive whose bytes depend on its content only.
archive() { # FOLDER NAME
    if [ "$exe" = batchscan.exe ]; then
        (cd "$1" && 7z a -bso0 "$files/$2.zip" ./*)
    else
        tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner -C "$1" -c . | gzip -9n > "$files/$2.tar.gz"
    fi
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/archive"
cp "$built" LICENSE README.md CHANGELOG.md "$work/archive"
archive "$work/archive" "batchscan-$version-$name"

# The wheel has the executable and the Python package.
python3 -m venv "$work/build"
python=$(echo "$work"/build/*/python)
"$python" -m pip install --quiet hatchling
(cd clients/python && BATCHSCAN_WHEEL_EXECUTABLE=$built BATCHSCAN_WHEEL_TAG=$tag "$python" -m hatchling build -t wheel -d "$files")

if [ "$name" = linux-x86_64 ]; then
    # The package has the same executable.
    env -u CFLAGS cargo xtask package --target "$triple"
    cp "$target"/debian/batchscan_*.deb "$files"
    cargo xtask sbom > "$files/batchscan-$version.cdx.json"
    xtask/container.sh "$built" "$files/batchscan-$version-image.tar"
fi
(cd "$files" && sha256sum -- * > SHA256SUMS && ls -l && cat SHA256SUMS)
if [ "$name" = linux-x86_64 ]; then
    xtask/try-release.sh "$files"
fi
