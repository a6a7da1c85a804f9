"""The list of what is in the programs, as a CycloneDX document."""

import datetime
import json
import tomllib
import uuid

from common import DESCRIPTION, HOMEPAGE, ROOT, epoch, version


def reference(package):
    return f"pkg:cargo/{package['name']}@{package['version']}"


def document(packages, target):
    """The packages with their checksums in Cargo.lock; the same text for the same lock."""
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]
    checksums = {(entry["name"], entry["version"]): entry.get("checksum") for entry in lock}
    components = []
    for package in packages:
        if package["name"] == "toolcrib-cli":
            continue
        component = {
            "type": "library",
            "bom-ref": reference(package),
            "name": package["name"],
            "version": package["version"],
            "purl": reference(package),
        }
        if package["license"]:
            component["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
        checksum = checksums.get((package["name"], package["version"]))
        if checksum:
            component["hashes"] = [{"alg": "SHA-256", "content": checksum}]
        components.append(component)
    time = datetime.datetime.fromtimestamp(epoch(), datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    serial = uuid.uuid5(uuid.NAMESPACE_URL, f"{HOMEPAGE}#{version()}-{target}-{epoch()}")
    return json.dumps(
        {
            "bomFormat": "CycloneDX",
            "specVersion": "1.5",
            "serialNumber": f"urn:uuid:{serial}",
            "version": 1,
            "metadata": {
                "timestamp": time,
                "component": {
                    "type": "application",
                    "bom-ref": f"pkg:cargo/toolcrib-cli@{version()}",
                    "name": "toolcrib",
                    "version": version(),
                    "description": DESCRIPTION,
                    "licenses": [{"expression": "MIT OR Apache-2.0"}],
                    "properties": [{"name": "target", "value": target}],
                },
            },
            "components": components,
            "dependencies": [
                {"ref": reference(package), "dependsOn": sorted({reference(used) for used in package["uses"]})}
                for package in packages
            ],
        },
        indent=1,
        sort_keys=True,
    ) + "\n"
