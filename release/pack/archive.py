"""Makes toolcrib-VERSION-TARGET.tar.gz: the programs, man pages, completions, licences, the list of what is in them.

python3 release/pack/archive.py --target TARGET --programs FOLDER --into FOLDER
"""

import argparse
import os
import pathlib
import subprocess
import tempfile

import licences
import sbom
from common import PROGRAMS, ROOT, gzipped, needed_glibc, tar_bytes, version, write


def output(program, *arguments):
    """What the program prints; it needs no home folder for it."""
    environment = {"PATH": os.environ.get("PATH", ""), "LANG": "C.UTF-8"}
    return subprocess.run([program, *arguments], check=True, stdout=subprocess.PIPE, env=environment).stdout


def generated(runs):
    """Man pages and completions, by a program that runs on this machine."""
    with tempfile.TemporaryDirectory() as folder:
        output(runs, "man", folder)
        pages = {f"man/{page.name}": (0o644, page.read_bytes()) for page in pathlib.Path(folder).iterdir()}
    shells = {"bash": "toolcrib.bash", "zsh": "_toolcrib", "fish": "toolcrib.fish"}
    completions = {f"completions/{name}": (0o644, output(runs, "completions", shell)) for shell, name in shells.items()}
    return pages | completions


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--target", required=True)
    options.add_argument("--programs", required=True, type=pathlib.Path, help="the folder with toolcrib and toolcrib-jail")
    options.add_argument("--runs", type=pathlib.Path, help="a toolcrib that runs here, if the target's does not")
    options.add_argument("--into", required=True, type=pathlib.Path)
    own = options.parse_args()

    packages = licences.packages(own.target)
    files = {name: (0o755, (own.programs / name).read_bytes()) for name in PROGRAMS}
    files |= generated((own.runs or own.programs / "toolcrib").resolve())
    for name in ("LICENSE-MIT", "LICENSE-APACHE", "README.md", "CHANGELOG.md", "SECURITY.md", "config.yml"):
        files[name] = (0o644, (ROOT / name).read_bytes())
    files["THIRD-PARTY-LICENSES.md"] = (0o644, licences.page(packages).encode())
    files["sbom.cdx.json"] = (0o644, sbom.document(packages, own.target).encode())
    for path in sorted((ROOT / "tools.d").rglob("*")):
        if path.is_file():
            mode = 0o755 if os.access(path, os.X_OK) else 0o644
            files[str(path.relative_to(ROOT))] = (mode, path.read_bytes())
    for path in sorted((ROOT / "release" / "linux").iterdir()):
        files[f"linux/{path.name}"] = (0o755 if path.suffix == ".sh" else 0o644, path.read_bytes())

    name = f"toolcrib-{version()}-{own.target}"
    data = gzipped(tar_bytes({f"{name}/{inside}": file for inside, file in files.items()}))
    write(own.into / f"{name}.tar.gz", data)
    glibc = max(needed_glibc(own.programs / program) for program in PROGRAMS)
    size = (own.programs / "toolcrib").stat().st_size
    print(f"toolcrib has {size:,} bytes; both programs run with glibc {glibc[0]}.{glibc[1]} and newer")


if __name__ == "__main__":
    main()
