# SPDX-License-Identifier: Apache-2.0
"""The build backend (PEP 517) of the Python package.

pip builds in an environment without the installed packages, and newer Pythons have no setuptools at
all. A backend that needs no other package builds without network in every fresh environment.

It makes one of two wheels:

- A small one, by default in a clone. Its modules load the libshmview that pkg-config finds, else the
  one that was built in this tree. $SHMVIEW_BUILD_DIR names another build folder.
- A self-contained one, by default from the source archive that build_sdist() makes, and in a clone
  with the setting bundle=yes. It has the library, the daemon and the libraries that they need.
  CMake builds them for the wheel.

$CC, $CFLAGS and $LDFLAGS have their usual meaning for the modules; the library and the daemon of a
self-contained wheel have flags of their own."""

import os
import shutil
import tempfile

from . import archive, bundle, extension
from .places import HERE, TREE, version

PACKAGE = (".py", ".pyi", ".pxd", "py.typed")


def _bundles(settings):
    """Whether the wheel has the library and the daemon."""
    chosen = (settings or {}).get("bundle")
    if chosen not in (None, "yes", "no"):
        raise SystemExit(f"the setting bundle is yes or no, not {chosen}")
    if chosen is None and os.path.exists(f"{TREE}/PKG-INFO"):  # an unpacked source archive
        return not extension.library_of_pkg_config() and not os.environ.get("SHMVIEW_BUILD_DIR")
    return chosen == "yes"


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    files, licences = {}, {"LICENSE": f"{TREE}/LICENSE"}
    for name in sorted(os.listdir(f"{HERE}/shmview")):
        if name.endswith(PACKAGE):
            files[f"shmview/{name}"] = f"{HERE}/shmview/{name}"
    work = tempfile.mkdtemp()
    try:
        if _bundles(config_settings):
            native = bundle.build(work)
            library = extension.Library([f"{TREE}/include"], [native.folder], [f"$ORIGIN/{bundle.FOLDER}"])
            files.update({f"shmview/{bundle.FOLDER}/{name}": path for name, path in native.files.items()})
            licences.update(native.licences)
        else:
            native, library = None, extension.find_library()
        for name, path in extension.build(library, work).items():
            files[f"shmview/{name}"] = path
        platform = bundle.platform(files.values()) if native else None
        expression = native.expression if native else archive.EXPRESSION
        return archive.write_wheel(wheel_directory, version(library.headers), platform, files, licences, expression)
    finally:
        shutil.rmtree(work)


def build_sdist(sdist_directory, config_settings=None):
    return archive.write_sdist(sdist_directory, version([f"{TREE}/include"]))
