# SPDX-License-Identifier: Apache-2.0
"""The build backend (PEP 517) of `pip install ./bindings/python`.

pip builds in an environment without the installed packages, and newer Pythons have no setuptools at
all. A backend that needs no other package builds without network in every fresh environment: it
compiles two extension modules and writes one zip file. It links against the libshmview that
pkg-config finds, else against the one that was built in this tree. $SHMVIEW_BUILD_DIR names another
build folder. $CC, $CFLAGS and $LDFLAGS have their usual meaning."""

import base64
import glob
import hashlib
import os
import re
import shlex
import subprocess
import sys
import sysconfig
import tempfile
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
TREE = os.path.dirname(os.path.dirname(HERE))
MODULES = {"_core": ["src/*.c"], "_sync": ["sync/*.c", "src/unlocked.c"]}
PACKAGE = ["*.py", "*.pyi", "*.pxd", "py.typed"]


def _pkg_config(option):
    command = [os.environ.get("PKG_CONFIG", "pkg-config"), option, "shmview"]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return [flag[2:] for flag in shlex.split(done.stdout.decode())]


def _library():
    """Returns the folders of the headers and those of the library."""
    chosen = os.environ.get("SHMVIEW_BUILD_DIR")
    if chosen:
        return [f"{TREE}/include"], [f"{os.path.abspath(chosen)}/client"]
    try:
        return _pkg_config("--cflags-only-I"), _pkg_config("--libs-only-L")
    except (OSError, subprocess.CalledProcessError):
        pass
    for name in ("release", "dev", "*"):
        for found in glob.glob(f"{TREE}/build/{name}/client/libshmview.so"):
            return [f"{TREE}/include"], [os.path.dirname(found)]
    sys.exit("no libshmview: neither pkg-config nor a build in this tree (make) has it")


def _version(folders):
    for folder in [*folders, "/usr/include"]:
        try:
            with open(f"{folder}/shmview/shmview.h") as header:
                return ".".join(re.findall(r"define SHMVIEW_VERSION_\w+ +(\d+)", header.read()))
        except OSError:
            pass
    sys.exit("no shmview/shmview.h: install the headers of libshmview")


def _compile(name, headers, libraries, output):
    """Compiles one extension module. Its symbols of Python are found in the program that loads it."""
    variables = sysconfig.get_config_vars()
    sources = sorted(file for pattern in MODULES[name] for file in glob.glob(f"{HERE}/{pattern}"))
    command = [*shlex.split(os.environ.get("CC") or variables["CC"]), "-shared", "-fPIC", "-O2", "-std=c11",
               "-D_GNU_SOURCE", "-DNDEBUG", "-fvisibility=hidden", *shlex.split(os.environ.get("CFLAGS", "")),
               *(f"-I{folder}" for folder in (HERE, sysconfig.get_path("include"), *headers)), "-o", output, *sources,
               *(f"-L{folder}" for folder in libraries), *(f"-Wl,-rpath,{folder}" for folder in libraries),
               *shlex.split(os.environ.get("LDFLAGS", "")), "-lshmview", "-lm"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        sys.exit(f"{shlex.join(command)}\n{done.stdout.decode(errors='replace')}\n"
                 f"a C compiler and Python's headers ({sysconfig.get_path('include')}) are needed")


def _tag():
    suffix = "t" if sysconfig.get_config_var("Py_GIL_DISABLED") else ""
    version = f"cp{sys.version_info[0]}{sys.version_info[1]}"
    return f"{version}-{version}{suffix}-{re.sub('[-.]', '_', sysconfig.get_platform())}"


def _write_wheel(path, info, metadata, files):
    """Writes a wheel (packaging.python.org, "Binary distribution format"): files by their names in it."""
    files = {**files, f"{info}/METADATA": metadata.encode(),
             f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: shmview\nRoot-Is-Purelib: false\nTag: {_tag()}\n".encode()}
    record = ""
    for name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(data)}\n"
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name)  # of 1980, so that a build can be repeated
            entry.external_attr = (0o755 if name.endswith(".so") else 0o644) << 16
            wheel.writestr(entry, data, zipfile.ZIP_DEFLATED)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    headers, libraries = _library()
    version = _version(headers)
    files = {}
    for path in sorted(file for pattern in PACKAGE for file in glob.glob(f"{HERE}/shmview/{pattern}")):
        with open(path, "rb") as file:
            files[f"shmview/{os.path.basename(path)}"] = file.read()
    with tempfile.TemporaryDirectory() as work:
        for name in MODULES:
            file_name = name + sysconfig.get_config_var("EXT_SUFFIX")
            _compile(name, headers, libraries, f"{work}/{file_name}")
            with open(f"{work}/{file_name}", "rb") as file:
                files[f"shmview/{file_name}"] = file.read()
    metadata = (f"Metadata-Version: 2.1\nName: shmview\nVersion: {version}\nRequires-Python: >=3.9\nLicense: Apache-2.0\n"
                "Summary: Named shared-memory segments with a lock and typed views\n")
    name = f"shmview-{version}-{_tag()}.whl"
    _write_wheel(os.path.join(wheel_directory, name), f"shmview-{version}.dist-info", metadata, files)
    return name


def build_sdist(sdist_directory, config_settings=None):
    sys.exit("the package is built in the tree of shmview: pip install ./bindings/python")
