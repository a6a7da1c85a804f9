"""Makes the package of Debian and Ubuntu from an archive: python3 release/pack/deb.py ARCHIVE [FOLDER]"""

import email.utils
import gzip
import hashlib
import os
import pathlib
import subprocess
import sys
import tempfile

from common import DESCRIPTION, HOMEPAGE, Archive, epoch, needed_glibc, write

MAINTAINER = "The toolcrib authors <toolcrib@users.noreply.github.com>"
CONFFILES = ("etc/toolcrib/config.yml", "etc/apparmor.d/toolcrib-jail")


def compressed(text):
    return gzip.compress(text, 9, mtime=0)


def changelog(version):
    """Debian's form of it; what changed is in the project's own."""
    date = email.utils.formatdate(epoch(), localtime=False, usegmt=False)
    return f"toolcrib ({version}) unstable; urgency=medium\n\n  * See /usr/share/doc/toolcrib/CHANGELOG.md.gz.\n\n -- {MAINTAINER}  {date}\n"


COPYRIGHT = f"""Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: toolcrib
Source: {HOMEPAGE}

Files: *
Copyright: 2026 The toolcrib authors
License: Expat or Apache-2.0
Comment: Licences of what is linked into the programs are in THIRD-PARTY-LICENSES.md.gz.

License: Expat
"""


def copyright_text(mit):
    """Debian's form of the licences; Apache's is a file of every installation."""
    terms = mit[mit.index("Permission is hereby granted") :]
    body = "".join(f" {line}\n" if line.strip() else " .\n" for line in terms.splitlines())
    apache = "License: Apache-2.0\n On Debian systems, the text is in /usr/share/common-licenses/Apache-2.0.\n"
    return f"{COPYRIGHT}{body}\n{apache}"


def tree(archive):
    """The files of the package by their paths."""
    file = lambda name: archive.files[name][1]
    files = {f"usr/bin/{name}": (0o755, file(name)) for name in ("toolcrib", "toolcrib-jail")}
    for name, (_, page) in archive.below("man").items():
        files[f"usr/share/man/man1/{name}.gz"] = (0o644, compressed(page))
    files["usr/share/man/man1/toolcrib-jail.1.gz"] = (0o644, compressed(file("linux/toolcrib-jail.1")))
    completions = {
        "toolcrib.bash": "usr/share/bash-completion/completions/toolcrib",
        "_toolcrib": "usr/share/zsh/vendor-completions/_toolcrib",
        "toolcrib.fish": "usr/share/fish/vendor_completions.d/toolcrib.fish",
    }
    for name, path in completions.items():
        files[path] = (0o644, file(f"completions/{name}"))
    documents = "usr/share/doc/toolcrib"
    for name in ("README.md", "SECURITY.md", "CHANGELOG.md", "THIRD-PARTY-LICENSES.md", "sbom.cdx.json"):
        files[f"{documents}/{name}.gz"] = (0o644, compressed(file(name)))
    files[f"{documents}/config.yml"] = (0o644, file("config.yml"))
    files[f"{documents}/changelog.gz"] = (0o644, compressed(changelog(archive.version).encode()))
    files[f"{documents}/copyright"] = (0o644, copyright_text(file("LICENSE-MIT").decode()).encode())
    for name, (mode, text) in archive.below("tools.d").items():
        files[f"{documents}/examples/tools.d/{name}"] = (mode, text)
    files["lib/systemd/system/toolcrib.service"] = (0o644, file("linux/toolcrib.service"))
    files["etc/toolcrib/config.yml"] = (0o644, file("linux/config.yml"))
    files["etc/apparmor.d/toolcrib-jail"] = (0o644, file("linux/apparmor"))
    return files


def control(archive, size):
    glibc = max(needed_glibc_of(archive))
    return f"""Package: toolcrib
Version: {archive.version}
Section: net
Priority: optional
Architecture: {archive.processor["deb"]}
Maintainer: {MAINTAINER}
Installed-Size: {size // 1024}
Depends: adduser, libc6 (>= {glibc[0]}.{glibc[1]}), libgcc-s1
Recommends: ca-certificates
Suggests: python3
Homepage: {HOMEPAGE}
Description: guarded tool room for LLM agents
 toolcrib serves tools to LLM agents over MCP, HTTP and the command line.
 Operators add a tool by dropping a YAML file into a folder. Every call is
 checked against a JSON Schema, may wait for a person's approval, runs
 confined by the kernel, and is recorded.
 .
 The service is neither enabled nor started at the installation.
"""


def needed_glibc_of(archive):
    with tempfile.TemporaryDirectory() as folder:
        for name in ("toolcrib", "toolcrib-jail"):
            path = pathlib.Path(folder) / name
            path.write_bytes(archive.files[name][1])
            yield needed_glibc(path)


def main():
    archive = Archive(sys.argv[1])
    into = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else archive.path.parent)
    files = tree(archive)
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder) / "root"
        for name, (mode, data) in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            path.chmod(mode)
        (root / "etc/toolcrib/tools.d").mkdir()
        (root / "DEBIAN").mkdir()
        size = sum(len(data) for _, data in files.values())
        (root / "DEBIAN/control").write_text(control(archive, size))
        (root / "DEBIAN/conffiles").write_text("".join(f"/{name}\n" for name in CONFFILES))
        for script in ("postinst", "prerm", "postrm"):
            path = root / "DEBIAN" / script
            path.write_bytes(archive.files[f"linux/{script}.sh"][1])
            path.chmod(0o755)
        sums = [f"{digest(data)}  {name}\n" for name, (_, data) in sorted(files.items()) if not name.startswith("etc/")]
        (root / "DEBIAN/md5sums").write_text("".join(sums))
        # Whoever builds it may have another umask; tools leave odd modes on folders.
        for path in [root, *root.rglob("*")]:
            if path.is_dir():
                path.chmod(0o755)
            os.utime(path, (epoch(), epoch()))
        made = pathlib.Path(folder) / "made.deb"
        subprocess.run(
            ["dpkg-deb", "--root-owner-group", "-Zxz", "--build", str(root), str(made)],
            check=True,
            stdout=subprocess.DEVNULL,
            env=os.environ | {"SOURCE_DATE_EPOCH": str(epoch())},
        )
        write(into / f"toolcrib_{archive.version}_{archive.processor['deb']}.deb", made.read_bytes())


def digest(data):
    """What dpkg checks the files of a package by."""
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


if __name__ == "__main__":
    main()
