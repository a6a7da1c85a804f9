"""Makes the wheel for PyPI from an archive, for `uvx toolcrib mcp`: python3 release/pack/wheel.py ARCHIVE [FOLDER]

It has both programs and no Python: pip puts them side by side into the environment's folder of programs.
"""

import base64
import hashlib
import io
import pathlib
import sys
import time
import zipfile

from common import DESCRIPTION, HOMEPAGE, MCP_NAME, PROGRAMS, Archive, epoch, write
from deb import needed_glibc_of


def main():
    archive = Archive(sys.argv[1])
    into = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else archive.path.parent)
    glibc = max(needed_glibc_of(archive))
    tag = f"py3-none-manylinux_{glibc[0]}_{glibc[1]}_{archive.processor['wheel']}"
    name = f"toolcrib-{archive.version}"
    about = f"{name}.dist-info"
    readme = archive.files["README.md"][1].decode()
    metadata = f"""Metadata-Version: 2.4
Name: toolcrib
Version: {archive.version}
Summary: {DESCRIPTION}
Home-page: {HOMEPAGE}
License-Expression: MIT OR Apache-2.0
License-File: LICENSE-MIT
License-File: LICENSE-APACHE
Requires-Python: >=3.8
Description-Content-Type: text/markdown

<!-- mcp-name: {MCP_NAME} -->

{readme}"""
    wheel = f"Wheel-Version: 1.0\nGenerator: toolcrib\nRoot-Is-Purelib: false\nTag: {tag}\n"
    files = {f"{name}.data/scripts/{program}": archive.files[program] for program in PROGRAMS}
    files[f"{about}/METADATA"] = (0o644, metadata.encode())
    files[f"{about}/WHEEL"] = (0o644, wheel.encode())
    for licence in ("LICENSE-MIT", "LICENSE-APACHE", "THIRD-PARTY-LICENSES.md"):
        files[f"{about}/licenses/{licence}"] = archive.files[licence]
    files[f"{about}/sboms/toolcrib.cdx.json"] = archive.files["sbom.cdx.json"]
    record = "".join(
        f"{path},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()},{len(data)}\n"
        for path, (_, data) in sorted(files.items())
    )
    files[f"{about}/RECORD"] = (0o644, f"{record}{about}/RECORD,,\n".encode())

    buffer = io.BytesIO()
    # Zip knows no time before 1980.
    date = time.gmtime(max(epoch(), 315532800))[:6]
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as wheel_file:
        for path, (mode, data) in sorted(files.items(), key=lambda entry: (about in entry[0], entry[0])):
            entry = zipfile.ZipInfo(path, date)
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3
            wheel_file.writestr(entry, data)
    write(into / f"{name}-{tag}.whl", buffer.getvalue())


if __name__ == "__main__":
    main()
