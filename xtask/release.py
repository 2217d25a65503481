"""Builds what is published into target/release-files, and tries each file where nothing else is installed (as root).

Linux builds the executables for Linux and Windows, the Debian package, the wheels, the container image and the list of
components; macOS its executable and wheel. `release.py try WHEEL` tries a wheel only.

The same commit with the same tools gives the same bytes, in whichever folder it is built. `release.py compare FOLDER` checks
that with the target/release-files of another clone.
"""

import gzip
import hashlib
import io
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from pathlib import Path
from urllib.parse import urlencode
from urllib.request import Request, urlopen

ROOT = Path(__file__).parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).absolute()
FILES = TARGET / "release-files"
VERSION = re.search(r'^version = "(.+)"$', (ROOT / "Cargo.toml").read_text(), re.MULTILINE).group(1)
HATCHLING = "hatchling==1.33.0"
LINUX, WINDOWS = "x86_64-unknown-linux-gnu", "x86_64-pc-windows-gnu"
# The container's user. A numeric id lets Kubernetes verify that it is not root.
USER = 10001
# Of public authorities, for services and PostgreSQL servers whose certificate is from one.
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")


def run(*command, **options):
    print("$", *command, flush=True)
    subprocess.run([str(part) for part in command], check=True, cwd=ROOT, **options)


def output(*command):
    return subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.PIPE, text=True).stdout.strip()


def main():
    if sys.argv[1:2] == ["try"]:
        return try_wheel(Path(sys.argv[2]))
    if sys.argv[1:2] == ["compare"]:
        return compare(Path(sys.argv[2]))
    if platform.system() == "Linux" and os.geteuid() != 0:
        sys.exit("run it as root: each file is tried in a root folder of its own")
    if output("git", "status", "--porcelain"):
        sys.exit("there are changes that are not committed: a release is built from a commit")
    if f"\n## {VERSION}" not in (ROOT / "CHANGELOG.md").read_text():
        print(f"note: CHANGELOG.md has no section ## {VERSION} yet")
    # Names of symbols contain a hash of the folder.
    os.environ["CARGO_PROFILE_DIST_STRIP"] = "symbols"
    os.environ["SOURCE_DATE_EPOCH"] = output("git", "log", "-1", "--format=%ct")
    shutil.rmtree(FILES, ignore_errors=True)
    FILES.mkdir(parents=True)
    if platform.system() == "Linux":
        build_for_linux_and_windows()
    else:
        machine = platform.machine()
        triple = f"{machine.replace('arm64', 'aarch64')}-apple-darwin"
        executable = build(triple)
        archive(f"macos-{machine}", executable)
        wheel(executable, f"macosx_11_0_{machine}")
    write_sums()
    (wheel_here,) = FILES.glob("*macosx*.whl" if platform.system() == "Darwin" else "*linux*.whl")
    try_wheel(wheel_here)
    if platform.system() == "Linux":
        try_in_empty_folders()


def build_for_linux_and_windows():
    # Statically linked: runs on any distribution, and in an empty container.
    executable = build(LINUX, "-C target-feature=+crt-static")
    archive("linux-x86_64", executable)
    wheel(executable, "manylinux2014_x86_64.musllinux_1_1_x86_64")
    image(executable)
    run("cargo", "xtask", "package", "--target", LINUX)
    shutil.copy(TARGET / f"debian/batchscan_{VERSION}-1_amd64.deb", FILES)
    (FILES / f"batchscan-{VERSION}.cdx.json").write_text(output("cargo", "xtask", "sbom"))
    # Built and tested on Linux (`cargo xtask test windows`).
    for name, value in compiler_flags(WINDOWS).items():
        os.environ[name] = value
    run("cargo", "xtask", "windows-build")
    executable = TARGET / WINDOWS / "dist/batchscan.exe"
    archive("windows-x86_64", executable, *sorted((ROOT / "deploy/windows").glob("*.ps1")))
    wheel(executable, "win_amd64")


def build(triple, flags=""):
    environment = {**os.environ, **compiler_flags(triple, flags)}
    run("cargo", "build", "--locked", "--profile", "dist", "--package", "batchscan", "--target", triple, env=environment)
    return TARGET / triple / "dist/batchscan"


def compiler_flags(triple, flags=""):
    """The folders of this machine do not belong into the files."""
    cargo_home = os.environ.get("CARGO_HOME", Path.home() / ".cargo")
    maps = [f"{ROOT}=/batchscan", f"{TARGET}=/target", f"{cargo_home}=/cargo"]
    if any(" " in folder for folder in maps):
        sys.exit("a folder has a space in its name, which compiler flags cannot have")
    name = triple.replace("-", "_")
    return {
        f"CARGO_TARGET_{name.upper()}_RUSTFLAGS": " ".join([f"--remap-path-prefix={folder}" for folder in maps] + [flags]),
        f"CFLAGS_{name}": " ".join(f"-ffile-prefix-map={folder}" for folder in maps),
    }


def archive(name, executable, *others):
    """A .zip for Windows, otherwise a .tar.gz."""
    files = [executable, *(ROOT / name for name in ["LICENSE", "README.md", "CHANGELOG.md"]), *others]
    path = FILES / f"batchscan-{VERSION}-{name}"
    if executable.suffix == ".exe":
        with zipfile.ZipFile(f"{path}.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as target:
            for file in files:
                # The oldest time that a .zip can have.
                target.writestr(zipfile.ZipInfo(file.name), file.read_bytes(), zipfile.ZIP_DEFLATED)
    else:
        entries = [(file.name, file.read_bytes(), 0o755 if file == executable else 0o644, 0) for file in files]
        Path(f"{path}.tar.gz").write_bytes(gzip.compress(tar(entries), 9, mtime=0))


def tar(entries):
    """Of names, contents (None: a folder), modes and owners."""
    result = io.BytesIO()
    with tarfile.open(fileobj=result, mode="w", format=tarfile.PAX_FORMAT) as target:
        for name, content, mode, owner in entries:
            entry = tarfile.TarInfo(name)
            entry.mode, entry.uid, entry.gid = mode, owner, owner
            entry.mtime = int(os.environ["SOURCE_DATE_EPOCH"])
            entry.type = tarfile.DIRTYPE if content is None else tarfile.REGTYPE
            entry.size = len(content or b"")
            target.addfile(entry, io.BytesIO(content or b""))
    return result.getvalue()


def wheel(executable, tag):
    """The command and the Python package."""
    with tempfile.TemporaryDirectory() as folder:
        python = venv(folder)
        run(python, "-m", "pip", "install", "--quiet", HATCHLING)
        environment = {**os.environ, "BATCHSCAN_WHEEL_EXECUTABLE": str(executable), "BATCHSCAN_WHEEL_TAG": f"py3-none-{tag}"}
        subprocess.run([python, "-m", "hatchling", "build", "-t", "wheel", "-d", FILES], check=True, cwd=ROOT / "clients/python", env=environment)


def venv(folder):
    run(sys.executable, "-m", "venv", folder)
    return next(path for path in Path(folder).glob("*/python*") if path.stem == "python")


def image(executable):
    """A container image of the executable only, as an OCI archive.

    OCI images have no health check: probe /healthz and /readyz on port 9090, as in deploy/kubernetes.
    """
    folders = [("tmp", 0o1777, 0), ("var", 0o755, 0), ("var/lib", 0o755, 0), ("var/lib/batchscan", 0o700, USER)]
    layer = tar(
        [(name, None, mode, owner) for name, mode, owner in folders]
        + [("usr/bin/batchscan", executable.read_bytes(), 0o755, 0)]
        + [(str(CERTIFICATES)[1:], CERTIFICATES.read_bytes(), 0o644, 0)]
    )
    blobs = {}

    def blob(media_type, content):
        digest = hashlib.sha256(content).hexdigest()
        blobs[f"blobs/sha256/{digest}"] = content
        return {"mediaType": f"application/vnd.oci.image.{media_type}", "digest": f"sha256:{digest}", "size": len(content)}

    def to_json(value):
        return json.dumps(value, separators=(",", ":")).encode()

    created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(int(os.environ["SOURCE_DATE_EPOCH"])))
    config = {
        "architecture": "amd64",
        "os": "linux",
        "created": created,
        "config": {
            "User": f"{USER}:{USER}",
            "WorkingDir": "/var/lib/batchscan",
            "Env": ["BATCHSCAN_LISTEN=0.0.0.0:8080", "BATCHSCAN_OPERATOR_LISTEN=0.0.0.0:9090"],
            "ExposedPorts": {"8080/tcp": {}, "9090/tcp": {}},
            "Entrypoint": ["/usr/bin/batchscan"],
            "Cmd": ["serve"],
            "Labels": {"org.opencontainers.image.version": VERSION},
        },
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
        "history": [{"created": created, "created_by": "xtask/release.py"}],
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": blob("config.v1+json", to_json(config)),
        "layers": [blob("layer.v1.tar+gzip", gzip.compress(layer, 9, mtime=0))],
    }
    reference = {**blob("manifest.v1+json", to_json(manifest)), "annotations": {"org.opencontainers.image.ref.name": VERSION}}
    index = {"schemaVersion": 2, "manifests": [reference]}
    files = {"oci-layout": to_json({"imageLayoutVersion": "1.0.0"}), "index.json": to_json(index), **blobs}
    entries = [(name, content, 0o644, 0) for name, content in sorted(files.items())]
    (FILES / f"batchscan-{VERSION}-image.tar").write_bytes(tar(entries))


def write_sums():
    lines = []
    for file in sorted(FILES.iterdir()):
        content = file.read_bytes()
        lines.append(f"{hashlib.sha256(content).hexdigest()}  {file.name}\n")
        print(f"{len(content):>12,} {lines[-1]}", end="")
    (FILES / "SHA256SUMS").write_text("".join(lines))


def compare(other):
    """Of the files themselves: sums may be of an earlier build."""
    if not (other / "SHA256SUMS").exists() or other.samefile(FILES):
        sys.exit(f"{other} is not the target/release-files of another clone")
    names = {file.name for folder in [FILES, other] for file in folder.iterdir()}
    contents = {name: [(folder / name).read_bytes() if (folder / name).exists() else None for folder in [FILES, other]] for name in names}
    if different := sorted(name for name, (ours, theirs) in contents.items() if ours != theirs):
        sys.exit(f"different in {FILES} and {other}: {', '.join(different)}")
    print(f"{len(names)} equal files in {FILES} and {other}")


def try_wheel(path):
    with tempfile.TemporaryDirectory() as folder:
        python = venv(folder)
        run(python, "-m", "pip", "install", "--quiet", path.absolute())
        read = (
            "import batchscan; client = batchscan.Client.from_env(); batch = next(client.batches());"
            "assert client.batch(batch.batch_id) == batch; print('Python package', batchscan.__version__, 'reads', batch.batch_name)"
        )
        command = python.with_name(python.name.replace("python", "batchscan"))
        quick_start("wheel", [command], lambda settings: run(python, "-c", read, env={**os.environ, **settings}))


def try_in_empty_folders():
    with tempfile.TemporaryDirectory() as folder:
        empty, root, debian = (Path(folder) / name for name in ["empty", "image", "debian"])
        (empty / "tmp").mkdir(parents=True)
        with tarfile.open(*FILES.glob("*-linux-x86_64.tar.gz")) as source:
            source.extractall(empty)
        quick_start("executable in an empty folder", ["chroot", empty, "/batchscan"])

        # The image's files, user and folder, without a container engine.
        with tarfile.open(*FILES.glob("*-image.tar")) as source:
            layer = max(source.getmembers(), key=lambda member: member.size)
            with tarfile.open(fileobj=source.extractfile(layer)) as files:
                files.extractall(root, numeric_owner=True)
        inside = ["unshare", f"--root={root}", "--wd=/var/lib/batchscan", f"--setgid={USER}", f"--setuid={USER}", "/usr/bin/batchscan"]
        run(*inside, "org", "add", "Nord")
        quick_start("container image", inside)

        # The Debian package, in a fresh Debian.
        if shutil.which("debootstrap") is None:
            run("apt-get", "update", "--quiet")
            run("apt-get", "install", "--yes", "--quiet", "debootstrap")
        run("debootstrap", "--variant=minbase", "stable", debian, stdout=subprocess.DEVNULL)
        shutil.copy(*FILES.glob("*.deb"), debian / "tmp/batchscan.deb")
        install = "dpkg --install /tmp/batchscan.deb && batchscan --version && batchscan org add Nord && batchscan org list"
        run("chroot", debian, "sh", "-c", install)
        quick_start("Debian package", ["chroot", debian, "batchscan"])


def quick_start(name, command, check=None):
    """Starts `demo`, reads a page with the printed credentials and the dashboard, and stops it."""
    started = time.monotonic()
    command = [*map(str, command), "demo", "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as demo:
        try:
            printed = ""
            while not printed.endswith("\n") or "\nlistening on" not in printed:
                line = demo.stdout.readline()
                if not line:
                    sys.exit(f"{name}: demo ended:\n{printed}")
                printed += line
            url, client_id, secret = re.search(r"URL +(\S+)\s+client id +(\S+)\s+client secret +(\S+)", printed).groups()
            form = {"grant_type": "client_credentials", "client_id": client_id, "client_secret": secret}
            with urlopen(f"{url}/v2/auth", urlencode(form).encode()) as response:
                token = json.load(response)["access_token"]
            with urlopen(Request(f"{url}/v2/batches", headers={"Authorization": f"Bearer {token}"})) as response:
                batches = len(json.load(response)["data"])
            print(f"{name}: a page of {batches} batches after {time.monotonic() - started:.1f} s", flush=True)
            with urlopen(f"{url}/") as response:
                assert b"<script" in response.read(), "the dashboard is missing"
            if check:
                check({"BATCHSCAN_URL": url, "BATCHSCAN_CLIENT_ID": client_id, "BATCHSCAN_CLIENT_SECRET": secret})
        finally:
            demo.terminate()


if __name__ == "__main__":
    main()
