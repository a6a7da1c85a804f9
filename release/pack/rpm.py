"""Makes the package of Fedora, RHEL and SUSE from an archive: python3 release/pack/rpm.py ARCHIVE [FOLDER]"""

import os
import pathlib
import subprocess
import sys
import tempfile

from common import DESCRIPTION, HOMEPAGE, Archive, epoch, write
from deb import needed_glibc_of, tree

SPEC = """Name: toolcrib
Version: {version}
Release: 1
Summary: {summary}
License: MIT OR Apache-2.0
URL: {homepage}
Requires: glibc >= {glibc}
Requires(pre): shadow-utils
Recommends: ca-certificates

%description
toolcrib serves tools to LLM agents over MCP, HTTP and the command line. Every call is checked against a JSON Schema,
may wait for a person's approval, runs confined by the kernel, and is recorded. The service is neither enabled nor
started at the installation.

%install
cp -a {root}/. %{{buildroot}}/

%pre
getent group toolcrib >/dev/null || groupadd -r toolcrib
getent passwd toolcrib >/dev/null || useradd -r -g toolcrib -d /var/lib/toolcrib -s /sbin/nologin toolcrib
exit 0

%preun
[ "$1" != 0 ] || ! [ -d /run/systemd/system ] || systemctl --no-reload disable --now toolcrib.service || true

%postun
! [ -d /run/systemd/system ] || systemctl daemon-reload || true
[ "$1" = 0 ] || ! [ -d /run/systemd/system ] || systemctl try-restart toolcrib.service || true

%files
%defattr(-,root,root)
{files}
"""


def main():
    archive = Archive(sys.argv[1])
    into = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else archive.path.parent)
    files = {}
    for name, file in tree(archive).items():
        # AppArmor is Debian's and SUSE's; there its profile is put in by hand.
        if name.startswith("etc/apparmor.d"):
            continue
        files[name.replace("lib/systemd/system", "usr/lib/systemd/system").replace("vendor-completions", "site-functions")] = file
    listed = []
    for name in sorted(files):
        if name == "etc/toolcrib/config.yml":
            listed.append(f"%config(noreplace) %attr(0640,root,toolcrib) /{name}")
        else:
            listed.append(f"/{name}")
    listed += ["%dir /etc/toolcrib", "%dir /etc/toolcrib/tools.d", "%dir /usr/share/doc/toolcrib"]
    glibc = max(needed_glibc_of(archive))
    spec = SPEC.format(
        version=archive.version, summary=DESCRIPTION, homepage=HOMEPAGE, glibc=f"{glibc[0]}.{glibc[1]}", files="\n".join(listed), root="ROOT"
    )
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        root = folder / "root"
        for name, (mode, data) in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            path.chmod(mode)
        (root / "etc/toolcrib/tools.d").mkdir()
        for path in [root, *root.rglob("*")]:
            if path.is_dir():
                path.chmod(0o755)
            os.utime(path, (epoch(), epoch()))
        (folder / "toolcrib.spec").write_text(spec.replace("ROOT/.", f"{root}/."))
        settings = {
            "_topdir": folder / "build",
            "_buildhost": "toolcrib",
            "_binary_payload": "w19.xzdio",
            "use_source_date_epoch_as_buildtime": "1",
            "clamp_mtime_to_source_date_epoch": "1",
            "__os_install_post": "%{nil}",
            "debug_package": "%{nil}",
            "__find_requires": "%{nil}",
            "_build_id_links": "none",
        }
        defined = [word for key, value in settings.items() for word in ("--define", f"{key} {value}")]
        processor = archive.processor["rpm"]
        done = subprocess.run(
            ["rpmbuild", "-bb", "--target", processor, *defined, str(folder / "toolcrib.spec")],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=os.environ | {"SOURCE_DATE_EPOCH": str(epoch()), "HOME": str(folder)},
        )
        if done.returncode:
            raise SystemExit(done.stdout)
        made = next((folder / "build/RPMS").rglob("*.rpm"))
        write(into / f"toolcrib-{archive.version}-1.{processor}.rpm", made.read_bytes())


if __name__ == "__main__":
    main()
