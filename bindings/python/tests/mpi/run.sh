#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run.sh ranks N | nodes N RANKS | killed, then PROGRAM [ARGUMENT...]: runs a program of several ranks with the MPI of
# mpi4py. $PYTHON is the interpreter, $SHMVIEW_SOURCE_DIR and $SHMVIEW_BUILD_DIR the trees, $MPIEXEC_openmpi,
# $MPIEXEC_mpich and $MPIEXEC_mpi the launchers. Exits with 77 and the reason if something is missing.
set -euo pipefail
scripts=${SHMVIEW_SOURCE_DIR:?}/mpi/tests
skip() {
    echo "$*"
    exit 77
}
for module in mpi4py numpy; do
    "${PYTHON:?}" -c "import $module" 2> /dev/null || skip "$PYTHON has no $module"
done
vendor=$("$PYTHON" -c 'import mpi4py; mpi4py.rc.initialize = False; from mpi4py import MPI; print(MPI.get_vendor()[0])')
implementation=mpich
[ "$vendor" != "Open MPI" ] || implementation=openmpi
name=$implementation
library=${SHMVIEW_BUILD_DIR:?}/mpi/libshmview-mpi-$name.so.0
if [ ! -e "$library" ]; then
    name=mpi
    library=$SHMVIEW_BUILD_DIR/mpi/libshmview-mpi.so.0
fi
[ -e "$library" ] || skip "libshmview-mpi has not been built for $vendor, the MPI of mpi4py"
launcher=MPIEXEC_$name
export SHMVIEW_MPI_LIBRARY=$library MPIEXEC=${!launcher:-} PYTHONWARNINGS=error::ResourceWarning

how=$1
shift
case "$how" in
ranks)
    n=$1
    shift
    exec bash "$scripts/ranks.sh" "$implementation" "$n" "$PYTHON" -m mpi4py "$@"
    ;;
nodes)
    [ "$implementation" = openmpi ] || skip "with MPICH, nodes that are namespaces are not reliable"
    n=$1 ranks=$2
    shift 2
    exec bash "$scripts/nodes.sh" "$implementation" "$n" "$ranks" "$PYTHON" -m mpi4py "$@"
    ;;
killed) exec bash "$(dirname "$0")/killed.sh" "$scripts/ranks.sh" "$implementation" "$PYTHON" "$@" ;;
*) exit 2 ;;
esac
