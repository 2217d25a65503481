#!/usr/bin/env bash
# try-release.sh FOLDER: installs each file of a release where nothing else is installed, and runs the quick start with it.
# Linux, as root: it needs an empty root folder, a fresh Debian and a virtual environment.
set -euo pipefail
files=$(realpath "$1")
work=$(mktemp -d)
pid=
trap 'kill $pid 2> /dev/null || true; rm -rf "$work"' EXIT

# Starts `demo` with a command, reads a page with the printed credentials, and stops it.
quick_start() { # NAME COMMAND...
    local started=$EPOCHREALTIME name=$1 log=$work/demo.log
    shift
    "$@" demo --listen 127.0.0.1:0 > "$log" 2>&1 &
    pid=$!
    until grep -q "^listening on" "$log"; do
        kill -0 $pid 2> /dev/null || { cat "$log"; return 1; }
        sleep 0.1
    done
    export BATCHSCAN_URL BATCHSCAN_CLIENT_ID BATCHSCAN_CLIENT_SECRET
    BATCHSCAN_URL=$(sed -n 's/^  URL *//p' "$log")
    BATCHSCAN_CLIENT_ID=$(sed -n 's/^  client id *//p' "$log")
    BATCHSCAN_CLIENT_SECRET=$(sed -n 's/^  client secret *//p' "$log")
    curl -fsS "$BATCHSCAN_URL/v2/auth" -d grant_type=client_credentials -d "client_id=$BATCHSCAN_CLIENT_ID" \
        -d "client_secret=$BATCHSCAN_CLIENT_SECRET" | sed 's/.*"access_token":"\([^"]*\)".*/header = "Authorization: Bearer \1"/' > "$work/token"
    curl -fsS --config "$work/token" "$BATCHSCAN_URL/v2/batches" | grep -q '"batch_id"'
    echo "$name: a page after $(echo "$EPOCHREALTIME $started" | awk '{ printf "%.1f", $1 - $2 }') s"
}
stop() { kill -INT $pid && wait $pid 2> /dev/null || true; }

# The executable, in a root folder with nothing else.
mkdir -p "$work/empty/tmp"
tar -xzf "$files"/batchscan-*-linux-x86_64.tar.gz -C "$work/empty"
quick_start "executable in an empty folder" chroot "$work/empty" /batchscan
stop

# The wheel: the command and the package.
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet "$files"/*.whl
quick_start wheel "$work/venv/bin/batchscan"
"$work/venv/bin/python" -c 'import batchscan
client = batchscan.Client.from_env()
batch = next(client.batches())
assert client.batch(batch.batch_id) == batch
print("Python package", batchscan.__version__, "reads", batch.batch_name)'
stop

# The container image: its files and its user, without a container engine.
mkdir "$work/image" "$work/image/root"
tar -xf "$files"/batchscan-*-image.tar -C "$work/image"
for blob in "$work"/image/blobs/sha256/*; do
    if file --brief "$blob" | grep -q -e gzip -e "tar archive"; then tar -xf "$blob" -C "$work/image/root"; fi
done
quick_start "container image" chroot --userspec=10001:10001 "$work/image/root" /usr/bin/batchscan
stop

# The Debian package, in a fresh Debian.
command -v debootstrap > /dev/null || { echo "installing debootstrap" && apt-get install --yes --quiet debootstrap; }
debootstrap --variant=minbase stable "$work/debian" > "$work/debootstrap.log" || { tail "$work/debootstrap.log"; exit 1; }
cp "$files"/batchscan_*.deb "$work/debian/tmp"
chroot "$work/debian" sh -c 'dpkg --install /tmp/batchscan_*.deb && batchscan org add Nord && batchscan org list && batchscan --version'
quick_start "Debian package" chroot "$work/debian" batchscan
stop
