# SPDX-License-Identifier: Apache-2.0
"""The library, the daemon, and the libraries that these need besides the C library's, for a wheel
that needs nothing else. All of them lie in one folder of the package, where the library looks for its
daemon and the loader for the libraries, by paths relative to the file that needs them."""

import os
import re
import shutil
import subprocess
import sysconfig
from typing import Dict, NamedTuple

from .places import TREE

FOLDER = "native"

# What every Linux with glibc has. PEP 600 has the rules for the tag.
OF_GLIBC = re.compile(r"(lib(c|m|pthread|dl|rt)|ld-linux[-\w]*)\.so\.\d+")

# A fixed file prefix, so that a build in another folder gives the same bytes. Packed relocations need
# glibc 2.36; a program without them loads 3 % slower. No libnuma, because it is under the LGPL; the
# licences of all other libraries demand their text and nothing else.
OPTIONS = ["-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_BUILD_WITH_INSTALL_RPATH=ON", "-DCMAKE_INSTALL_RPATH=$ORIGIN",
           "-DCMAKE_C_FLAGS_RELEASE=-O2 -DNDEBUG", "-DCMAKE_SHARED_LINKER_FLAGS=-s", "-DCMAKE_EXE_LINKER_FLAGS=-s",
           f'-DCMAKE_C_FLAGS="-ffile-prefix-map={TREE}=."', "-DSHMVIEW_PACKS_RELOCATIONS=OFF",
           "-DSHMVIEW_CCACHE=OFF", "-DSHMVIEW_SYSTEMD=OFF", "-DSHMVIEW_NUMA=OFF", "-DSHMVIEW_MPI=OFF",
           "-DSHMVIEW_TESTS=OFF", "-DSHMVIEW_TOOLS=OFF", "-DSHMVIEW_EXAMPLES=OFF", "-DSHMVIEW_BENCH=OFF",
           "-DSHMVIEW_PYTHON=", "-DSHMVIEW_RUBY="]


# SPDX identifiers of the licences of each such library, without code for other systems than Linux. From 2.15 on
# jansson also has dtoa.c, which its licence names by this company.
IDENTIFIERS = {"jansson": ["MIT"], "lmdb": ["OLDAP-2.8"], "uv": ["BSD-2-Clause", "ISC", "MIT"]}
OF_DTOA = "Lucent Technologies"


class Native(NamedTuple):
    """What was built. folder: where the library is; files, licences: paths by names; expression: the licences
    of all files, for the metadata."""
    folder: str
    files: Dict[str, str]
    licences: Dict[str, str]
    expression: str


def _run(*command):
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={**os.environ, "LC_ALL": "C"})
    except OSError as error:
        raise SystemExit(f"{command[0]}: {error.strerror}; docs/INSTALL.md lists what a build needs") from None
    text = done.stdout.decode(errors="replace")
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\n{text}")
    return text


def _foreign(path):
    """Returns the paths of the libraries that the program or library needs and a system may lack, by their
    names."""
    # Otherwise ldd would list preloaded libraries too.
    found = dict(re.findall(r"(\S+) => (/\S+)", _run("env", "-u", "LD_PRELOAD", "ldd", path)))
    return {name: place for name, place in found.items()
            if not OF_GLIBC.fullmatch(name) and not name.startswith("libshmview")}


def _licence(library):
    """Returns the path of the licence of a library of the system, and the name of its package."""
    real = os.path.realpath(library)
    for file in (library, real, re.sub("^/usr", "", real), "/usr" + real):
        done = subprocess.run(["dpkg", "-S", file], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) \
            if shutil.which("dpkg") else None
        if done and done.returncode == 0:
            package = done.stdout.decode().split(":")[0]
            return package, f"/usr/share/doc/{package}/copyright"
    stem = re.match(r"lib([a-z]+)", os.path.basename(library)).group(1)
    for package in (f"lib{stem}", stem):
        for place in (f"/usr/share/licenses/{package}", f"/usr/share/doc/{package}"):
            for name in ("LICENSE", "LICENCE", "COPYING", "copyright"):
                if os.path.exists(f"{place}/{name}"):
                    return package, f"{place}/{name}"
    raise SystemExit(f"{library}: no licence found below /usr/share, and a package must not have it without one")


def _texts(file):
    """Returns the paths of the licences that a file of Debian refers to instead of having their text, by
    names for the wheel."""
    with open(file, encoding="utf-8", errors="replace") as text:
        places = re.findall(r"/usr/share/common-licenses/[\w.+-]*\w", text.read())
    for place in places:
        if not os.path.exists(place):
            raise SystemExit(f"{file} refers to {place}, which is not there, and a package must have its text")
    return {place[len("/usr/share/"):]: place for place in places}


def _expression(licences):
    """Returns the SPDX expression of a package with these libraries. licences: their paths by the names of the
    libraries."""
    found = {"Apache-2.0"}
    for name, path in licences.items():
        stem = re.match(r"lib([a-z]+)", name).group(1)
        if stem not in IDENTIFIERS:
            raise SystemExit(f"{name}: bundle.py has no SPDX identifier of its licence, {path}")
        found.update(IDENTIFIERS[stem])
        with open(path, encoding="utf-8", errors="replace") as text:
            if OF_DTOA in text.read():
                found.add("dtoa")
    return " AND ".join(sorted(found))


def build(work):
    """Builds library and daemon below work. Returns a Native."""
    _run("cmake", "-S", TREE, "-B", f"{work}/build", *OPTIONS)
    _run("cmake", "--build", f"{work}/build", "--parallel", str(os.cpu_count() or 1), "--target", "shmview", "shmviewd")
    library, daemon = f"{work}/build/client/libshmview.so", f"{work}/build/daemon/shmviewd"
    soname = re.search(r"SONAME.*\[(.*)\]", _run("readelf", "-d", library)).group(1)
    files, licences, of_libraries = {"shmviewd": daemon, soname: library}, {}, {}
    for name, path in {**_foreign(library), **_foreign(daemon)}.items():
        files[name] = path
        package, licence = _licence(path)
        of_libraries[name] = licence
        licences.update({f"{package}.txt": licence, **_texts(licence)})
    return Native(os.path.dirname(library), files, licences, _expression(of_libraries))


def platform(paths):
    """Returns the platform tag (PEP 600) of the oldest glibc that has all symbols of these files."""
    versions = {(2, 17)}
    for path in paths:
        with open(path, "rb") as file:
            if file.read(4) == b"\x7fELF":
                text = _run("readelf", "--version-info", "--wide", path)
                versions |= {tuple(map(int, numbers)) for numbers in re.findall(r"\bGLIBC_(\d+)\.(\d+)", text)}
                if "GLIBC_ABI_DT_RELR" in text:
                    versions.add((2, 36))
    machine = re.sub(r"\W", "_", sysconfig.get_platform().split("-", 1)[1])
    return "manylinux_%d_%d_%s" % (*max(versions), machine)
