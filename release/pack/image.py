"""Makes images of containers without a registry or a daemon: python3 release/pack/image.py ARCHIVE [FOLDER]

`toolcrib-VERSION-slim-PROCESSOR.oci.tar` has the programs and glibc, `…-tools-…` also python3, bash and coreutils; both
are OCI layouts, for `podman load`, `skopeo copy oci-archive:…` and `ctr image import`. The root file systems come from a
mirror of Debian by mmdebstrap, as files only: no script of a package runs.
"""

import datetime
import hashlib
import io
import json
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile

from common import HOMEPAGE, MCP_NAME, PROGRAMS, Archive, epoch, gzipped, tar_bytes, write

USER = 65532
PACKAGES = {
    "slim": "libc6,libgcc-s1,ca-certificates,tzdata",
    "tools": "libc6,libgcc-s1,ca-certificates,tzdata,python3-minimal,bash,coreutils,grep,sed,findutils",
}
# What nobody reads in a container.
LEFT_OUT = ("usr/share/doc/", "usr/share/man/", "usr/share/locale/", "usr/share/info/", "usr/share/lintian/")


def root_files(kind, processor):
    """A tar of Debian's files, the certificates in one file."""
    with tempfile.TemporaryDirectory() as folder:
        made = pathlib.Path(folder) / "root.tar"
        command = ["mmdebstrap", "--variant=extract", f"--include={PACKAGES[kind]}", f"--architectures={processor}", "bookworm"]
        environment = os.environ | {"SOURCE_DATE_EPOCH": str(epoch())}
        done = subprocess.run([*command, str(made)], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            raise SystemExit(f"mmdebstrap: {done.stdout[-2000:]}")
        return made.read_bytes()


def layer(kind, archive):
    """The one layer of an image."""
    buffer = io.BytesIO()
    certificates = []
    with tarfile.open(fileobj=io.BytesIO(root_files(kind, archive.processor["oci"]))) as old:
        with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as new:
            for entry in old:
                entry.name = entry.name.removeprefix("./")
                if entry.name.startswith(LEFT_OUT) or entry.name.startswith("dev/") or not entry.name:
                    continue
                entry.mtime = epoch()
                entry.pax_headers = {}
                data = old.extractfile(entry) if entry.isfile() else None
                if entry.isfile() and entry.name.startswith("usr/share/ca-certificates/"):
                    certificates.append((entry.name, data.read()))
                    data.seek(0)
                new.addfile(entry, data)
    certificate_file = b"".join(text for _, text in sorted(certificates))
    user = f"root:x:0:0:root:/root:/bin/sh\ntoolcrib:x:{USER}:{USER}::/var/lib/toolcrib:/nonexistent\n"
    files = {f"usr/bin/{name}": archive.files[name] for name in PROGRAMS}
    files |= {
        "etc/passwd": (0o644, user.encode()),
        "etc/group": (0o644, f"root:x:0:\ntoolcrib:x:{USER}:\n".encode()),
        "etc/ssl/certs/ca-certificates.crt": (0o644, certificate_file),
        "etc/toolcrib/config.yml": (0o644, archive.files["linux/config.yml"][1]),
    }
    system, own = tar_bytes(files), io.BytesIO()
    with tarfile.open(fileobj=own, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for name, mode, owner in (
            ("etc/toolcrib/tools.d", 0o755, 0),
            ("var/lib/toolcrib", 0o700, USER),
            ("var/lib/toolcrib/workspace", 0o700, USER),
        ):
            entry = tarfile.TarInfo(name)
            entry.type, entry.mode, entry.mtime, entry.uid, entry.gid = tarfile.DIRTYPE, mode, epoch(), owner, owner
            tar.addfile(entry)
    # A tar ends with blocks of zeros; the parts are put together as one.
    parts = [buffer.getvalue(), system, own.getvalue()]
    joined = io.BytesIO()
    with tarfile.open(fileobj=joined, mode="w", format=tarfile.GNU_FORMAT) as whole:
        later = set(files)
        for number, part in enumerate(parts):
            with tarfile.open(fileobj=io.BytesIO(part)) as tar:
                for entry in tar:
                    # Debian's own file of that name is replaced.
                    if number == 0 and entry.name in later:
                        continue
                    whole.addfile(entry, tar.extractfile(entry) if entry.isfile() else None)
    return joined.getvalue()


def image(kind, archive):
    """An OCI layout."""
    data = layer(kind, archive)
    packed = gzipped(data)
    blobs = {}

    def blob(content):
        digest = hashlib.sha256(content).hexdigest()
        blobs[f"blobs/sha256/{digest}"] = (0o644, content)
        return {"digest": f"sha256:{digest}", "size": len(content)}

    def document(value):
        return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()

    created = datetime.datetime.fromtimestamp(epoch(), datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    labels = {
        "org.opencontainers.image.title": "toolcrib",
        "org.opencontainers.image.version": archive.version,
        "org.opencontainers.image.source": HOMEPAGE,
        "org.opencontainers.image.licenses": "MIT OR Apache-2.0",
        "io.modelcontextprotocol.server.name": MCP_NAME,
    }
    config = {
        "created": created,
        "architecture": archive.processor["oci"],
        "os": "linux",
        "config": {
            "User": f"{USER}:{USER}",
            # A container has a network of its own, from which only published ports are reached.
            "Env": [
                "PATH=/usr/bin:/bin",
                "TOOLCRIB_CONFIG=/etc/toolcrib/config.yml",
                "TOOLCRIB__SERVER__LISTEN=0.0.0.0:7777",
            ],
            "Entrypoint": ["toolcrib"],
            "Cmd": ["serve"],
            "WorkingDir": "/etc/toolcrib",
            "ExposedPorts": {"7777/tcp": {}},
            "Labels": labels,
            "Healthcheck": {"Test": ["CMD", "toolcrib", "health"], "Interval": 30 * 10**9, "Timeout": 5 * 10**9},
        },
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(data).hexdigest()}"]},
        "history": [{"created": created, "created_by": "release/pack/image.py"}],
    }
    media = "application/vnd.oci.image"
    manifest = {
        "schemaVersion": 2,
        "mediaType": f"{media}.manifest.v1+json",
        "config": {"mediaType": f"{media}.config.v1+json", **blob(document(config))},
        "layers": [{"mediaType": f"{media}.layer.v1.tar+gzip", **blob(packed)}],
    }
    name = archive.version if kind == "slim" else f"{archive.version}-{kind}"
    index = {
        "schemaVersion": 2,
        "mediaType": f"{media}.index.v1+json",
        "manifests": [
            {
                "mediaType": f"{media}.manifest.v1+json",
                "platform": {"architecture": archive.processor["oci"], "os": "linux"},
                "annotations": {"org.opencontainers.image.ref.name": name},
                **blob(document(manifest)),
            }
        ],
    }
    files = blobs | {
        "index.json": (0o644, document(index)),
        "oci-layout": (0o644, document({"imageLayoutVersion": "1.0.0"})),
    }
    return tar_bytes(files)


def main():
    archive = Archive(sys.argv[1])
    into = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else archive.path.parent)
    for kind in PACKAGES:
        write(into / f"toolcrib-{archive.version}-{kind}-{archive.processor['oci']}.oci.tar", image(kind, archive))


if __name__ == "__main__":
    main()
