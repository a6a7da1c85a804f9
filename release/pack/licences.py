"""The packages that are linked into the programs, and their licences."""

import json
import os
import pathlib
import subprocess

from common import ROOT

# Names of files with the text of a licence, or what a licence asks to be kept.
TEXTS = ("license", "licence", "copying", "notice", "unlicense")


def packages(target):
    """What the released program is built from, apart from what only builds and tests need."""
    command = [os.environ.get("CARGO", "cargo"), "metadata", "--format-version=1", "--locked", "--offline"]
    command += ["--filter-platform", target, "--manifest-path", str(ROOT / "Cargo.toml"), "--features", "toolcrib-cli/otlp"]
    found = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    by_id = {package["id"]: package for package in found["packages"]}
    nodes = {node["id"]: node for node in found["resolve"]["nodes"]}
    # The features that tests and benchmarks turn on do not matter for which packages there are: cargo tree says what
    # the program alone is linked with.
    tree = [os.environ.get("CARGO", "cargo"), "tree", "--locked", "--offline", "--target", target, "-p", "toolcrib-cli"]
    tree += ["--features", "otlp", "--edges", "normal", "--prefix", "none", "--format", "{p}"]
    lines = subprocess.run(tree, check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT).stdout.splitlines()
    linked = {tuple(line.split()[:2]) for line in lines if line}
    chosen = [package for package in by_id.values() if (package["name"], f"v{package['version']}") in linked]
    for package in chosen:
        package["uses"] = [
            by_id[dependency["pkg"]]
            for dependency in nodes[package["id"]]["deps"]
            if any(kind["kind"] is None for kind in dependency["dep_kinds"])
        ]
    names = {(package["name"], package["version"]) for package in chosen}
    for package in chosen:
        package["uses"] = [used for used in package["uses"] if (used["name"], used["version"]) in names]
    return sorted(chosen, key=lambda package: (package["name"], package["version"]))


def texts(package):
    """The texts of a package's licence that come with its source."""
    folder = pathlib.Path(package["manifest_path"]).parent
    return [
        path.read_text(errors="replace").strip()
        for path in sorted(folder.iterdir())
        if path.is_file() and path.name.lower().startswith(TEXTS)
    ]


def page(chosen):
    """Every package with its licence, then every text once."""
    lines = ["# Licences of what is linked into toolcrib", ""]
    by_text = {}
    for package in chosen:
        if package["source"] is None:
            continue
        name = f"{package['name']} {package['version']}"
        lines.append(f"- {name}: {package['license'] or 'see its text below'}")
        for text in texts(package):
            by_text.setdefault(text, []).append(name)
    for text, names in sorted(by_text.items(), key=lambda entry: entry[1]):
        lines += ["", f"## {', '.join(names)}", "", "```text", text.replace("```", "'''"), "```"]
    return "\n".join(lines) + "\n"
