#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""sbom.py VERSION: prints what the release in the current folder contains, as SPDX 2.3: each file with its
checksum, the libraries of Debian that the wheel contains, uPlot, and the packages on which the Debian packages depend.
The time is $SOURCE_DATE_EPOCH, so that the same files give the same text."""

import glob
import hashlib
import json
import os
import re
import subprocess
import sys
import tarfile
import time
import uuid
import zipfile

LICENCE = "Apache-2.0"
UPLOT_ARCHIVE = re.compile(r"(uplot-|.*\.orig-uplot\.)[0-9.]*tar\.gz")
SUPPLIER = "Organization: the authors of shmview"


def identifier(*parts):
    return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.]+", "-", "-".join(parts))


def output(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout.decode()


def package(name, version, **more):
    return {"SPDXID": identifier("Package", name), "name": name, "versionInfo": version,
            "downloadLocation": "NOASSERTION", "filesAnalyzed": False, "copyrightText": "NOASSERTION",
            "licenseConcluded": "NOASSERTION", "licenseDeclared": "NOASSERTION", **more}


def released(path, version):
    with open(path, "rb") as file:
        digest = hashlib.sha256(file.read()).hexdigest()
    checksums = [{"algorithm": "SHA256", "checksumValue": digest}]
    if UPLOT_ARCHIVE.fullmatch(path):
        return uplot(path, path, packageFileName=path, checksums=checksums)
    declared = f"{LICENCE} AND MIT" if path.startswith("shmview-web_") else LICENCE
    # A wheel has libraries with licences of their own.
    concluded = "NOASSERTION" if path.endswith(".whl") else declared
    return package(path, version, packageFileName=path, supplier=SUPPLIER, licenseConcluded=concluded,
                   licenseDeclared=declared, copyrightText="2026 the authors of shmview", checksums=checksums)


def uplot(archive, name, **more):
    """Returns a package with the version and the licence of the npm package whose files an archive has."""
    with tarfile.open(archive) as tar:
        described = json.load(tar.extractfile("uplot/package.json"))
    return package(name, described["version"], supplier=f"Person: {described['author'].split(' <')[0]}",
                   licenseConcluded=described["license"], licenseDeclared=described["license"],
                   externalRefs=[{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                                  "referenceLocator": f"pkg:npm/uplot@{described['version']}"}], **more)


def of_debian(name):
    """Returns a package of Debian that is installed here."""
    version, machine, source = output(
        "dpkg-query", "-W", "-f", "${Version} ${Architecture} ${source:Package}\n", name).split("\n")[0].split()
    return package(name, version, supplier="Organization: Debian", sourceInfo=f"Debian source package {source}",
                   externalRefs=[{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                                  "referenceLocator": f"pkg:deb/debian/{name}@{version}?arch={machine}"}])


def inside(wheel):
    """Returns the names of the packages of Debian whose libraries the wheel contains. The backend has named
    the files of their licences after them."""
    names = zipfile.ZipFile(wheel).namelist()
    found = [re.fullmatch(r".*\.dist-info/licenses/(.*)\.txt", name) for name in names]
    return sorted(match.group(1) for match in found if match)


def needed(deb, own):
    """Returns the names of the packages that the package depends on, of alternatives the first one that is
    installed here."""
    found = set()
    for alternatives in filter(None, output("dpkg-deb", "-f", deb, "Depends").strip().split(", ")):
        names = [re.match(r"[^ :]+", name).group() for name in alternatives.split(" | ")]
        for name in names:
            if name not in own and subprocess.run(["dpkg", "-s", name], stdout=subprocess.DEVNULL,
                                                  stderr=subprocess.DEVNULL).returncode == 0:
                found.add(name)
                break
    return sorted(found)


def main():
    version = sys.argv[1]
    debs = sorted(glob.glob("*.deb"))
    own = {deb.split("_")[0] for deb in debs}
    packages, foreign, relations = [], {}, []

    def relate(one, kind, other):
        relations.append({"spdxElementId": one, "relationshipType": kind, "relatedSpdxElement": other})

    def lean(one, kind, name):
        foreign.setdefault(name, of_debian(name))
        relate(one, kind, foreign[name]["SPDXID"])

    for path in sorted(os.listdir()):
        made = released(path, version)
        packages.append(made)
        relate("SPDXRef-DOCUMENT", "DESCRIBES", made["SPDXID"])
        for name in inside(path) if path.endswith(".whl") else ():
            lean(made["SPDXID"], "CONTAINS", name)
        for name in needed(path, own) if path.endswith(".deb") else ():
            lean(made["SPDXID"], "DEPENDS_ON", name)
        if UPLOT_ARCHIVE.fullmatch(path):
            foreign["uplot"] = uplot(path, "uplot")
        if UPLOT_ARCHIVE.fullmatch(path) or path.startswith("shmview-web_"):
            relate(made["SPDXID"], "CONTAINS", identifier("Package", "uplot"))
    packages += [foreign[name] for name in sorted(foreign)]
    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(int(os.environ["SOURCE_DATE_EPOCH"])))
    # A name that only these packages give, as SPDX demands.
    unique = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(packages, sort_keys=True))
    json.dump({"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
               "name": f"shmview-{version}", "documentNamespace": f"urn:uuid:{unique}",
               "creationInfo": {"created": when, "creators": ["Tool: shmview-sbom.py"]},
               "packages": packages, "relationships": relations}, sys.stdout, indent=1, sort_keys=True)
    print()


main()
