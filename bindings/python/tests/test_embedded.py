# SPDX-License-Identifier: Apache-2.0
"""A program runs Python in another thread than its first one. Ctrl-C must end waits there too,
whichever thread has imported shmview."""

import os
import shlex
import subprocess
import sys
import sysconfig

import pytest

from test_interrupts import PROGRAM

pytestmark = pytest.mark.usefixtures("daemon")

# Like `python -c`: its arguments are the source and the arguments of the source.
EMBEDDING = r"""
#include <Python.h>
#include <pthread.h>
#include <signal.h>

static char **arguments;
static wchar_t program[4096];

static void *interpret(void *none)
{
    PyConfig config;
    PyConfig_InitPythonConfig(&config);
    PyConfig_SetBytesString(&config, &config.program_name, arguments[1]);
    wchar_t *source = Py_DecodeLocale(arguments[2], NULL);
    wchar_t *argument = Py_DecodeLocale(arguments[3], NULL);
    wchar_t *argv[] = {program, L"-c", source, argument};
    config.parse_argv = 1;
    PyConfig_SetArgv(&config, 4, argv);
    PyStatus status = Py_InitializeFromConfig(&config);
    if (PyStatus_Exception(status))
        Py_ExitStatusException(status);
    PyConfig_Clear(&config);
    exit(Py_RunMain());
    return none;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    arguments = argv;
    if (argc != 4 || pthread_create(&thread, NULL, interpret, NULL))
        return 1;
    /* This thread would take a signal at any later time, when Python has removed its handler. */
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    pthread_join(thread, NULL);
    return 0;
}
"""

IMPORT_ELSEWHERE = """
import threading
importer = threading.Thread(target=__import__, args=("shmview",))
importer.start()
importer.join()
"""


@pytest.fixture(scope="module")
def embedding(tmp_path_factory):
    """Builds a program that runs Python in its second thread."""
    library = sysconfig.get_config_var("LDLIBRARY")
    folder = sysconfig.get_config_var("LIBDIR")
    if not sysconfig.get_config_var("Py_ENABLE_SHARED") or not os.path.exists(f"{folder}/{library}"):
        pytest.skip("this Python has no shared library to embed")
    folder_made = tmp_path_factory.mktemp("embedding")
    (folder_made / "main.c").write_text(EMBEDDING)
    command = [*shlex.split(os.environ.get("CC", "cc")), "-o", str(folder_made / "main"), str(folder_made / "main.c"),
               "-I" + sysconfig.get_path("include"), f"{folder}/{library}", f"-Wl,-rpath,{folder}", "-pthread"]
    subprocess.run(command, check=True)
    return folder_made / "main"


@pytest.mark.parametrize("wait", ["Lock", "with Array", "segment", "change", "attach"])
@pytest.mark.parametrize("imported", ["by the main thread", "by another thread"])
def test_interrupt(embedding, wait, imported):
    source = (IMPORT_ELSEWHERE if imported == "by another thread" else "") + PROGRAM
    done = subprocess.run([embedding, sys.executable, source, wait], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=100)
    assert done.stderr == b"", done.stderr.decode()
    assert (done.returncode, done.stdout) == (0, b"interrupted\n")
