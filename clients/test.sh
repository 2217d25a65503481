#!/usr/bin/env bash
# Tests other people's clients, the recipes, `pull` and the Python package against the batchscan executable.
# With arguments, runs only pytest with them: clients/test.sh -k recipe. BATCHSCAN_EXE names another executable.
set -euo pipefail
cd "$(dirname "$0")/.."
target=$(realpath --canonicalize-missing "${CARGO_TARGET_DIR:-target}")
BATCHSCAN_EXE=$(realpath --canonicalize-missing "${BATCHSCAN_EXE:-$target/release/batchscan}")
# Some packages under test register pytest plugins, which take seconds to import.
export BATCHSCAN_EXE PYTHONDONTWRITEBYTECODE=1 PYTEST_DISABLE_PLUGIN_AUTOLOAD=1
cd clients

require() { # Debian package, command that succeeds if it is installed
  local package=$1
  shift
  "$@" > /dev/null 2>&1 || { echo "error: \`$*\` failed; install the package $package" >&2; exit 1; }
}
require python3-venv python3 -c 'import ensurepip, venv'
require curl command -v curl
require jq command -v jq
require nodejs command -v node
require npm command -v npm
require chromium command -v chromium
require r-base-core command -v Rscript
require 'r-cran-httr2 and r-cran-jsonlite' Rscript -e 'library(httr2); library(jsonlite)'

# The virtual environments are rebuilt when a requirements file, Python or their own path changes: they contain the path.
environments="$target/clients/$( (python3 --version; echo "$target"; cat requirements*.txt) | sha256sum | cut -c1-16)"
install() { # name, requirements
  echo "installing $(grep -c == "$2") Python packages from clients/$2"
  python3 -m venv "$environments/$1"
  # All dependencies are pinned, so pip need not resolve them. `pip check` reports a missing one.
  "$environments/$1/bin/pip" install --quiet --disable-pip-version-check --no-deps --requirement "$2"
  "$environments/$1/bin/pip" check
}
if [ ! -f "$environments/complete" ]; then
  rm -rf "$target/clients"
  install airbyte requirements-airbyte.txt &
  install tests requirements.txt
  wait $!
  touch "$environments/complete"
fi
python="$environments/tests/bin/python"

if [ $# -gt 0 ]; then
  exec "$python" -m pytest "$@"
fi
if [ ! node/node_modules/.package-lock.json -nt node/package-lock.json ]; then
  echo "installing Node packages from clients/node/package-lock.json"
  npm ci --prefix node --ignore-scripts --no-audit --no-fund --loglevel=error
fi
"$python" -m mypy --config-file python/pyproject.toml --cache-dir "$environments/mypy" python/src
node/node_modules/.bin/pyright --pythonpath "$python" python/src
"$python" -m pytest -p xdist -n 2 --dist worksteal
node --test node/clients.test.mjs
