# SPDX-License-Identifier: Apache-2.0
"""Compiles the extension modules, and finds the library that they load."""

import glob
import os
import shlex
import subprocess
import sysconfig
from typing import List, NamedTuple

from .places import HERE, TREE

# As CMake compiles the library: the modules read bytes of other processes, too.
HARDENING = ["-fstack-protector-strong", "-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=2", "-Wl,-z,relro", "-Wl,-z,now"]
MODULES = {"_core": ["src/*.c"], "_sync": ["sync/*.c", "src/unlocked.c"]}


class Library(NamedTuple):
    """Folders: of the headers, of the library at build time, and of the library at run time."""
    headers: List[str]
    libraries: List[str]
    paths: List[str]


def _pkg_config(option):
    command = [os.environ.get("PKG_CONFIG", "pkg-config"), option, "shmview"]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return [flag[2:] for flag in shlex.split(done.stdout.decode())]


def library_of_pkg_config():
    """Returns the Library that is installed, or None."""
    try:
        headers, libraries = _pkg_config("--cflags-only-I"), _pkg_config("--libs-only-L")
        return Library(headers, libraries, libraries)
    except (OSError, subprocess.CalledProcessError):
        return None


def find_library():
    """Returns the Library that was chosen, that is installed, or that was built in this tree."""
    chosen = os.environ.get("SHMVIEW_BUILD_DIR")
    folders = [f"{os.path.abspath(chosen)}/client"] if chosen else []
    installed = None if chosen else library_of_pkg_config()
    if installed:
        return installed
    for name in ("release", "dev", "*"):
        folders += [os.path.dirname(path) for path in glob.glob(f"{TREE}/build/{name}/client/libshmview.so")]
    if not folders:
        raise SystemExit("no libshmview: neither pkg-config nor a build in this tree (make) has it; "
                         "--config-settings=bundle=yes builds one into the package")
    return Library([f"{TREE}/include"], folders[:1], folders[:1])


def build(library, work):
    """Compiles the modules into the folder work. Returns their paths by their names in the package. Their
    symbols of Python are found in the program that loads them."""
    variables = sysconfig.get_config_vars()
    made = {}
    for name, patterns in MODULES.items():
        file = name + variables["EXT_SUFFIX"]
        sources = sorted(path for pattern in patterns for path in glob.glob(f"{HERE}/{pattern}"))
        command = [*shlex.split(os.environ.get("CC") or variables["CC"]), "-shared", "-fPIC", "-O2", "-std=c11",
                   "-D_GNU_SOURCE", "-DNDEBUG", "-fvisibility=hidden", f"-ffile-prefix-map={TREE}=.", *HARDENING,
                   *shlex.split(os.environ.get("CFLAGS", "")),
                   *(f"-I{folder}" for folder in (HERE, sysconfig.get_path("include"), *library.headers)),
                   "-o", f"{work}/{file}", *sources, *(f"-L{folder}" for folder in library.libraries),
                   *(f"-Wl,-rpath,{path}" for path in library.paths),
                   *shlex.split(os.environ.get("LDFLAGS", "")), "-lshmview", "-lm"]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode:
            raise SystemExit(f"{shlex.join(command)}\n{done.stdout.decode(errors='replace')}\n"
                             f"a C compiler and Python's headers ({sysconfig.get_path('include')}) are needed")
        made[file] = f"{work}/{file}"
    return made
