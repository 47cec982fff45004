# SPDX-License-Identifier: Apache-2.0
"""A build backend that uses the setuptools of the system. pip builds in an environment that hides the
installed packages. Downloading setuptools again would need a network, so this adds their folders to
the path."""

import importlib.util
import sys
import sysconfig


def _find_setuptools():
    if importlib.util.find_spec("setuptools"):
        return
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    places = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib"),
              f"{sys.base_prefix}/lib/python3/dist-packages",
              f"{sys.base_prefix}/local/lib/{version}/dist-packages",
              f"{sys.base_prefix}/lib/{version}/site-packages"]
    sys.path.extend(place for place in places if place not in sys.path)
    if not importlib.util.find_spec("setuptools"):
        raise ImportError(f"setuptools is in none of {places}: install python3-setuptools")


_find_setuptools()

from setuptools import build_meta  # noqa: E402
from setuptools.build_meta import *  # noqa: E402,F401,F403


def get_requires_for_build_wheel(config_settings=None):
    return []


def get_requires_for_build_sdist(config_settings=None):
    return []


def prepare_metadata_for_build_wheel(directory, config_settings=None):
    return build_meta.prepare_metadata_for_build_wheel(directory, config_settings)
