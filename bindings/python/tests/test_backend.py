# SPDX-License-Identifier: Apache-2.0
"""The build backend: the files that it packs, and licences. tests/scripts/wheel.sh builds with it."""

import os
import subprocess
import sys
import tarfile
import zipfile

import pytest

SOURCE = os.environ["SHMVIEW_SOURCE_DIR"]
sys.path.insert(0, f"{SOURCE}/bindings/python")

from backend import archive, bundle

LEFT_BY_BUILDS = ["bindings/python/dist/shmview-1.tar.gz", "build/log", "uplot/package.json",
                  "web/node_modules/uplot/package.json", "bindings/python/backend/__pycache__/a.pyc"]
SOURCES = ["LICENSE", "bindings/python/backend/archive.py", "docs/PYTHON.md", "web/page.c"]


@pytest.mark.parametrize("git", [False, True])
def test_sources(tmp_path, monkeypatch, git):
    """A source archive has each source, and nothing that a build has left, with git and without it."""
    for name in SOURCES + LEFT_BY_BUILDS:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    if git:
        try:
            subprocess.run(["git", "-C", tmp_path, "init", "-q"], check=True)
        except OSError:
            pytest.skip("no git")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    monkeypatch.setattr(archive, "TREE", str(tmp_path))
    assert archive._sources() == SOURCES
    name = archive.write_sdist(str(tmp_path), "1.2.3")
    with tarfile.open(tmp_path / name) as tar:
        packed = {member.name for member in tar}
        metadata = tar.extractfile("shmview-1.2.3/PKG-INFO").read().decode().splitlines()
    assert packed == {f"shmview-1.2.3/{source}" for source in [*SOURCES, "PKG-INFO", "pyproject.toml"]}
    assert {"Metadata-Version: 2.4", "License-Expression: Apache-2.0", "License-File: LICENSE"} <= set(metadata)


def test_the_expression_names_the_licences_of_all_libraries(tmp_path):
    licence = tmp_path / "copyright"
    licence.write_text("Permission is hereby granted")
    bundled = {name: str(licence) for name in ("libjansson.so.4", "libuv.so.1", "liblmdb.so.0")}
    expression = bundle._expression(bundled)
    assert expression == "Apache-2.0 AND BSD-2-Clause AND ISC AND MIT AND OLDAP-2.8"
    name = archive.write_wheel(str(tmp_path), "1.2.3", None, {"a.py": __file__}, {"LICENSE": str(licence)}, expression)
    with zipfile.ZipFile(tmp_path / name) as wheel:
        assert f"License-Expression: {expression}\n" in wheel.read("shmview-1.2.3.dist-info/METADATA").decode()
    licence.write_text("Copyright (c) 1991, 2000, 2001 by Lucent Technologies.")
    assert bundle._expression(bundled) == f"{expression} AND dtoa"
    with pytest.raises(SystemExit, match="libnuma.so.1: bundle.py has no SPDX identifier"):
        bundle._expression({**bundled, "libnuma.so.1": str(licence)})


def test_git_ignores_what_builds_leave():
    if not os.path.exists(f"{SOURCE}/.git"):
        pytest.skip("no clone")
    # A pattern for folders needs the slash where there is no folder.
    folders = ["bindings/python/dist/", "build/", "uplot/", "web/node_modules/"]
    done = subprocess.run(["git", "-C", SOURCE, "-c", "safe.directory=*", "check-ignore", *folders], stdout=subprocess.PIPE)
    assert done.stdout.decode().split() == folders


def test_licences_have_their_texts(tmp_path):
    """What a licence of Debian refers to is in the wheel; if it is not on the machine, there is no wheel."""
    copyright = tmp_path / "copyright"
    copyright.write_text("License: Expat\n Permission is hereby granted\n")
    assert bundle._texts(copyright) == {}
    copyright.write_text("can be found in '/usr/share/common-licenses/No-Such-1.0'.\n")
    with pytest.raises(SystemExit, match="common-licenses/No-Such-1.0, which is not there"):
        bundle._texts(copyright)
    if os.path.exists("/usr/share/common-licenses/LGPL-2.1"):
        copyright.write_text('in "/usr/share/common-licenses/LGPL-2.1".\n')
        assert bundle._texts(copyright) == {"common-licenses/LGPL-2.1": "/usr/share/common-licenses/LGPL-2.1"}
