# SPDX-License-Identifier: Apache-2.0
"""Writes wheels (packaging.python.org, "Binary distribution format") and source archives ("Source
distribution format"). The same files give the same bytes, whenever and wherever they are packed."""

import base64
import gzip
import hashlib
import io
import os
import re
import stat
import subprocess
import sys
import sysconfig
import tarfile
import zipfile

from .places import TREE

SUMMARY = "Named shared-memory segments with a lock and typed views"
EXPRESSION = "Apache-2.0"
PYPROJECT = """[build-system]
requires = []
build-backend = "backend"
backend-path = ["bindings/python"]
"""


def _metadata(version, licences, expression=EXPRESSION):
    """Returns the text of METADATA or PKG-INFO. licences: names of files, in an archive from its top; expression:
    that of SPDX."""
    with open(f"{TREE}/docs/PYTHON.md") as page:
        text = page.read()
    heads = ["Metadata-Version: 2.4", "Name: shmview", f"Version: {version}", f"Summary: {SUMMARY}",
             f"License-Expression: {expression}", *(f"License-File: {name}" for name in sorted(licences)),
             "Requires-Python: >=3.9", "Keywords: shared memory,ipc,numpy,dlpack,lock",
             "Classifier: Operating System :: POSIX :: Linux", "Classifier: Programming Language :: C",
             "Classifier: Programming Language :: Python :: 3",
             "Classifier: Programming Language :: Python :: Implementation :: CPython", "Classifier: Typing :: Typed",
             "Description-Content-Type: text/markdown"]
    return "\n".join(heads) + "\n\n" + text


def _tag(platform):
    suffix = "t" if sysconfig.get_config_var("Py_GIL_DISABLED") else ""
    python = f"cp{sys.version_info[0]}{sys.version_info[1]}"
    return f"{python}-{python}{suffix}-{platform or re.sub('[-.]', '_', sysconfig.get_platform())}"


def write_wheel(folder, version, platform, files, licences, expression=EXPRESSION):
    """Writes a wheel of files, which are paths by their names in it. platform: its tag. None: that of this
    Python. expression: of its licences. Returns the name of the wheel."""
    info, tag = f"shmview-{version}.dist-info", _tag(platform)
    paths = {**files, **{f"{info}/licenses/{name}": path for name, path in licences.items()}}
    content, record = {}, ""
    for name, path in sorted(paths.items()):
        with open(path, "rb") as file:
            content[name] = file.read()
    content[f"{info}/METADATA"] = _metadata(version, licences, expression).encode()
    content[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: shmview\nRoot-Is-Purelib: false\nTag: {tag}\n".encode()
    for name, data in content.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(data)}\n"
    content[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    wheel_name = f"shmview-{version}-{tag}.whl"
    with zipfile.ZipFile(os.path.join(folder, wheel_name), "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, data in content.items():
            entry = zipfile.ZipInfo(name)  # of 1980
            runs = data[:4] == b"\x7fELF"
            entry.external_attr = (stat.S_IFREG | (0o755 if runs else 0o644)) << 16
            wheel.writestr(entry, data, zipfile.ZIP_DEFLATED)
    return wheel_name


def _sources():
    """Returns the names of all files of the tree: those that git has, or those of an unpacked archive."""
    try:
        done = subprocess.run(["git", "-C", TREE, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                              check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        names = done.stdout.decode().split("\0")[:-1]
    except (OSError, subprocess.CalledProcessError):
        names = [os.path.relpath(os.path.join(folder, file), TREE)
                 for folder, _, files in os.walk(TREE) for file in files]
    ignored = re.compile(r"(\.ci|bindings/python/dist|build|uplot|web/node_modules)/|.*__pycache__|pyproject.toml$|PKG-INFO$")
    return sorted(name for name in names if not ignored.match(name) and os.path.lexists(f"{TREE}/{name}"))


def write_sdist(folder, version):
    """Writes an archive of the whole tree. Returns its name."""
    top = f"shmview-{version}"
    when = int(os.environ.get("SOURCE_DATE_EPOCH", 0))
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.PAX_FORMAT) as tar:
        def add(entry, data=None):
            entry.uid = entry.gid = 0
            entry.uname = entry.gname = ""
            entry.mtime = when
            entry.mode = 0o755 if entry.mode & 0o100 else 0o644
            tar.addfile(entry, data)

        for name, text in (("PKG-INFO", _metadata(version, ["LICENSE"])), ("pyproject.toml", PYPROJECT)):
            entry = tarfile.TarInfo(f"{top}/{name}")
            data = text.encode()
            entry.size = len(data)
            add(entry, io.BytesIO(data))
        for name in _sources():
            entry = tar.gettarinfo(f"{TREE}/{name}", f"{top}/{name}")
            if entry.isreg():
                with open(f"{TREE}/{name}", "rb") as file:
                    add(entry, file)
            else:
                add(entry)
    with open(os.path.join(folder, f"{top}.tar.gz"), "wb") as raw:
        with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=when) as packed:
            packed.write(plain.getvalue())
    return f"{top}.tar.gz"
