"""What all packers share: the version, times, archives that are the same at each run."""

import gzip
import hashlib
import io
import os
import pathlib
import re
import tarfile
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[2]
DESCRIPTION = "A guarded tool room for LLM agents, over MCP, HTTP and the command line"
HOMEPAGE = "https://github.com/toolcrib/toolcrib"
# The name in the registry of MCP servers; packages name it to show that they belong to it.
MCP_NAME = "io.github.toolcrib/toolcrib"
PROGRAMS = ("toolcrib", "toolcrib-jail")
# The names that each kind of package has for a processor.
PROCESSORS = {
    "x86_64-unknown-linux-gnu": {"deb": "amd64", "wheel": "x86_64", "npm": "x64", "rpm": "x86_64", "oci": "amd64"},
    "aarch64-unknown-linux-gnu": {"deb": "arm64", "wheel": "aarch64", "npm": "arm64", "rpm": "aarch64", "oci": "arm64"},
}


def version():
    """The version of the workspace."""
    return tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]


def epoch():
    """The time of every file that is packed."""
    return int(os.environ.get("SOURCE_DATE_EPOCH", "0"))


def needed_glibc(program):
    """The newest version of glibc that a program names symbols of, as (2, 28)."""
    found = re.findall(rb"GLIBC_(\d+)\.(\d+)", pathlib.Path(program).read_bytes())
    return max(((int(major), int(minor)) for major, minor in found), default=(2, 17))


def tar_bytes(files, owner=("root", 0)):
    """A tar of {name: (mode, bytes)}, in order of the names, with the folders that they need."""
    buffer = io.BytesIO()
    folders = set()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as tar:
        def add(name, mode, kind, data=b""):
            entry = tarfile.TarInfo(name)
            entry.mode, entry.type, entry.size, entry.mtime = mode, kind, len(data), epoch()
            entry.uname = entry.gname = owner[0]
            entry.uid = entry.gid = owner[1]
            tar.addfile(entry, io.BytesIO(data))

        for name in sorted(files):
            parents = name.split("/")[:-1]
            for depth in range(1, len(parents) + 1):
                folder = "/".join(parents[:depth])
                if folder not in folders:
                    folders.add(folder)
                    add(folder, 0o755, tarfile.DIRTYPE)
            mode, data = files[name]
            add(name, mode, tarfile.REGTYPE, data)
    return buffer.getvalue()


def gzipped(data):
    """The same bytes for the same data."""
    return gzip.compress(data, 9, mtime=0)


def write(path, data):
    """Writes a file that people download, and its SHA-256 beside it."""
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    digest = hashlib.sha256(data).hexdigest()
    pathlib.Path(f"{path}.sha256").write_text(f"{digest}  {path.name}\n")
    print(f"{path}  {len(data):,} bytes  sha256:{digest}")


class Archive:
    """The archive of a target, which every package is made from."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        name = self.path.name.removesuffix(".tar.gz")
        found = re.fullmatch(r"toolcrib-(\d+\.\d+\.\d+[^_]*?)-((?:x86_64|aarch64)-.+)", name)
        if not found:
            raise SystemExit(f"{path}: the name of an archive is toolcrib-VERSION-TARGET.tar.gz")
        self.version, self.target = found.groups()
        self.processor = PROCESSORS[self.target]
        self.files = {}
        with tarfile.open(self.path) as tar:
            for entry in tar:
                if entry.isfile():
                    # What is packed has the time of the archive, whenever it is packed.
                    os.environ["SOURCE_DATE_EPOCH"] = str(entry.mtime)
                    inside = entry.name.split("/", 1)[1]
                    self.files[inside] = (entry.mode, tar.extractfile(entry).read())

    def below(self, folder):
        """The files of a folder by their names in it."""
        start = f"{folder}/"
        return {name.removeprefix(start): own for name, own in self.files.items() if name.startswith(start)}
