# SPDX-License-Identifier: Apache-2.0
"""Builds the package for `pip install ./bindings/python`. Links it against the libshmview in the
build folder $SHMVIEW_BUILD_DIR; otherwise the one that pkg-config finds; otherwise the one that was
built in this tree."""

import atexit
import glob
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

from setuptools import Extension, setup

here = os.path.dirname(os.path.abspath(__file__))
tree = os.path.dirname(os.path.dirname(here))


def pkg_config(*arguments):
    command = [os.environ.get("PKG_CONFIG", "pkg-config"), *arguments, "shmview"]
    return shlex.split(subprocess.run(command, check=True, stdout=subprocess.PIPE,
                                      stderr=subprocess.DEVNULL).stdout.decode())


def built(folder):
    """Returns the options that compile and link against a build folder of this tree."""
    return dict(include_dirs=[f"{tree}/include"], library_dirs=[f"{folder}/client"],
                runtime_library_dirs=[f"{folder}/client"])


def library():
    chosen = os.environ.get("SHMVIEW_BUILD_DIR")
    if chosen:
        return built(os.path.abspath(chosen))
    try:
        folders = [flag[2:] for flag in pkg_config("--libs-only-L")]
        return dict(include_dirs=[flag[2:] for flag in pkg_config("--cflags-only-I")],
                    library_dirs=folders, runtime_library_dirs=folders)
    except (OSError, subprocess.CalledProcessError):
        pass
    for name in ("release", "dev", "*"):
        for found in glob.glob(f"{tree}/build/{name}/client/libshmview.so"):
            return built(os.path.dirname(os.path.dirname(found)))
    sys.exit("no libshmview: neither pkg-config nor a build in this tree (make) has it")


def version(folders):
    """Returns the version that the header in one of the folders defines."""
    for folder in [*folders, "/usr/include"]:
        try:
            with open(f"{folder}/shmview/shmview.h") as header:
                return ".".join(re.findall(r"define SHMVIEW_VERSION_\w+ +(\d+)", header.read()))
        except OSError:
            pass
    sys.exit("no shmview/shmview.h")


found = library()
found["include_dirs"].append(here)  # for sync/, which includes src/unlocked.h
work = tempfile.mkdtemp(prefix="shmview-build-")  # so that the build writes nothing into the tree
atexit.register(shutil.rmtree, work, ignore_errors=True)
setup(
    name="shmview",
    version=version(found["include_dirs"]),
    description="Named shared-memory segments with a lock and typed views",
    license="Apache-2.0",
    python_requires=">=3.9",
    packages=["shmview"],
    package_data={"shmview": ["*.pyi", "*.pxd", "py.typed"]},
    ext_modules=[Extension(f"shmview.{name}", sorted({"src/unlocked.c", *glob.glob(f"{folder}/*.c")}), depends=glob.glob("*/*.h"),
                           libraries=["shmview"], define_macros=[("_GNU_SOURCE", "1")],
                           extra_compile_args=["-std=c11", "-fvisibility=hidden"], **found)
                 for name, folder in (("_core", "src"), ("_sync", "sync"))],
    zip_safe=False,
    options={"build": {"build_base": work}, "egg_info": {"egg_base": work}},
)
