#!/usr/bin/env bash
# container.sh EXECUTABLE ARCHIVE: a container image of only the executable, as an OCI archive. OCI images have no health
# check: probe /healthz and /readyz on port 9090, as in deploy/kubernetes.
set -euo pipefail
command -v buildah > /dev/null || { echo "installing buildah" && apt-get install --yes --quiet buildah; }
folder=$(mktemp -d)
layout=$(mktemp -d)
trap 'rm -rf "$folder" "$layout"' EXIT
install -D "$1" "$folder/usr/bin/batchscan"
install -d -m 0700 -o 10001 -g 10001 "$folder/var/lib/batchscan"
install -d -m 1777 "$folder/tmp"
# Certificates of public authorities, for PostgreSQL servers that have one.
install -D -m 0644 /etc/ssl/certs/ca-certificates.crt "$folder/etc/ssl/certs/ca-certificates.crt"
find "$folder" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
export STORAGE_DRIVER=vfs BUILDAH_ISOLATION=chroot
image=$(buildah from scratch)
buildah copy --quiet "$image" "$folder" /
# A numeric id lets Kubernetes verify that it is not root.
buildah config --user 10001:10001 --workingdir /var/lib/batchscan --port 8080 --port 9090 \
    --env BATCHSCAN_LISTEN=0.0.0.0:8080 --env BATCHSCAN_OPERATOR_LISTEN=0.0.0.0:9090 \
    --entrypoint '["/usr/bin/batchscan"]' --cmd serve "$image"
buildah commit --quiet --timestamp "$SOURCE_DATE_EPOCH" --rm "$image" "oci:$layout:batchscan"
tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner -C "$layout" -cf "$2" .
