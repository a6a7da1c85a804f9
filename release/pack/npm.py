"""Makes the packages for npm from archives, for `npx -y toolcrib mcp`: python3 release/pack/npm.py ARCHIVE... [--into FOLDER]

`@toolcrib/linux-x64` and its like have the programs; `toolcrib` has a launcher and names them as optional
dependencies, of which npm installs the one for the machine. No package has an install script.
"""

import argparse
import json
import pathlib

from common import DESCRIPTION, HOMEPAGE, MCP_NAME, PROGRAMS, ROOT, Archive, gzipped, tar_bytes, write


def package(name, version, files, **more):
    """The bytes of a package, as `npm pack` lays it out."""
    about = {
        "name": name,
        "version": version,
        "description": DESCRIPTION,
        "license": "MIT OR Apache-2.0",
        "homepage": HOMEPAGE,
        "repository": {"type": "git", "url": f"git+{HOMEPAGE}.git"},
        "engines": {"node": ">=18"},
        **more,
    }
    files = files | {"package.json": (0o644, (json.dumps(about, indent=2) + "\n").encode())}
    return gzipped(tar_bytes({f"package/{path}": file for path, file in files.items()}))


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("archives", nargs="+", metavar="ARCHIVE")
    options.add_argument("--into", type=pathlib.Path)
    own = options.parse_args()
    archives = [Archive(path) for path in own.archives]
    into = own.into or archives[0].path.parent
    version = archives[0].version
    if {archive.version for archive in archives} != {version}:
        raise SystemExit("the archives have different versions")

    for archive in archives:
        processor = archive.processor["npm"]
        files = {f"bin/{program}": archive.files[program] for program in PROGRAMS}
        for name in ("LICENSE-MIT", "LICENSE-APACHE", "THIRD-PARTY-LICENSES.md", "sbom.cdx.json"):
            files[name] = archive.files[name]
        files["README.md"] = (0o644, f"The programs of [toolcrib]({HOMEPAGE}) for Linux on {processor}.\n".encode())
        data = package(
            f"@toolcrib/linux-{processor}", version, files, os=["linux"], cpu=[processor], libc=["glibc"], preferUnplugged=True
        )
        write(into / f"toolcrib-linux-{processor}-{version}.tgz", data)

    files = {
        "bin/toolcrib.js": (0o755, (ROOT / "release/npm/toolcrib.js").read_bytes()),
        "README.md": archives[0].files["README.md"],
        "LICENSE-MIT": archives[0].files["LICENSE-MIT"],
        "LICENSE-APACHE": archives[0].files["LICENSE-APACHE"],
    }
    # All of them, also those that are packed elsewhere.
    optional = {f"@toolcrib/linux-{processor}": version for processor in ("arm64", "x64")}
    data = package(
        "toolcrib", version, files, bin={"toolcrib": "bin/toolcrib.js"}, optionalDependencies=optional, mcpName=MCP_NAME
    )
    write(into / f"toolcrib-{version}.tgz", data)


if __name__ == "__main__":
    main()
