#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# nodes.sh IMPLEMENTATION NODES RANKS PROGRAM [ARGUMENT...]: runs a program on several nodes, with so many
# ranks on each, all on this machine. IMPLEMENTATION is openmpi or mpich.
#
# A node is a process in namespaces of its own: network, mounts with an own /dev/shm and /tmp, host name, IPC,
# and process ids. A bridge in one more network namespace joins the nodes, and there mpiexec runs. It
# starts its agents with a script that enters the namespaces of a node, instead of ssh. No daemon runs on
# a node before: the library starts a session daemon. Nothing of this is left, because each node ends with
# its first process, and that with this script.
#
# If PROGRAM is a script, it runs where mpiexec would, and starts programs on the nodes by $NODES_RUN PROGRAM.
# $MPIEXEC names the launcher, $SHMVIEW_DAEMON the daemon, $NODES_LIMIT_S the longest time. Exits with 77
# and the reason where namespaces are not permitted.
set -euo pipefail
implementation=$1 n_nodes=$2 n_ranks=$3
shift 3
skip() {
    echo "nodes.sh: $*"
    exit 77
}
mpiexec=${MPIEXEC:-$(command -v "mpiexec.$implementation" || true)}
[ -x "$mpiexec" ] || skip "there is no mpiexec of $implementation"
for tool in ip nsenter unshare mount; do
    command -v "$tool" > /dev/null || skip "there is no $tool"
done
[ "$(id -u)" -eq 0 ] || skip "namespaces of networks need root"
unshare --net --mount --uts --ipc --pid --fork true 2> /dev/null || skip "namespaces are not permitted here"

# From here on in the namespaces of the switch.
if [ -z "${NODES_INSIDE:-}" ]; then
    exec env NODES_INSIDE=1 MPIEXEC="$mpiexec" unshare --net --mount --uts --ipc --pid --fork --kill-child \
        bash "$0" "$implementation" "$n_nodes" "$n_ranks" "$@"
fi
unset NODES_INSIDE
mount -t proc proc /proc
scratch=$(mktemp -d /tmp/nodes.XXXXXX)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/run"
export XDG_RUNTIME_DIR=$scratch/run TMPDIR=$scratch/run
{
    echo "127.0.0.1 localhost"
    echo "10.77.0.254 switch"
    for ((i = 0; i < n_nodes; i++)); do echo "10.77.0.$((i + 1)) node$i"; done
} > "$scratch/hosts"
if [ -e /etc/hosts ]; then
    mount --bind "$scratch/hosts" /etc/hosts
else # in a root that was made only now
    cp -a /etc "$scratch/etc"
    cp "$scratch/hosts" "$scratch/etc/hosts"
    mount --bind "$scratch/etc" /etc
fi
hostname switch
ip link set lo up
ip link add bridge type bridge 2> "$scratch/log" || skip "the kernel has no bridges: $(cat "$scratch/log")"
ip address add 10.77.0.254/24 dev bridge
ip link set bridge up

for ((i = 0; i < n_nodes; i++)); do
    # shellcheck disable=SC2016
    unshare --net --mount --uts --ipc --pid --fork --kill-child bash -c '
        mount -t proc proc /proc
        mount -t tmpfs tmpfs /dev/shm
        mount -t tmpfs -o mode=700 tmpfs "$1/run"
        hostname "node$2"
        ip link set lo up
        touch "$1/ready$2"
        exec sleep infinity' node "$scratch" "$i" &
    while [ ! -e "$scratch/ready$i" ]; do sleep 0.01; done
    # The process that unshare has forked is the first one of the node.
    pid=$(cat "/proc/$!/task/$!/children")
    echo "${pid%% *}" > "$scratch/node$i.pid"
    ip link add "port$i" type veth peer name eth0 netns "${pid%% *}"
    ip link set "port$i" master bridge up
    nsenter -t "${pid%% *}" -n ip address add "10.77.0.$((i + 1))/24" dev eth0
    nsenter -t "${pid%% *}" -n ip link set eth0 up
done

# What MPI starts instead of ssh: HOST COMMAND...
cat > "$scratch/agent" << END
#!/bin/bash
while [[ \$1 == -* ]]; do shift; done
host=\$1
shift
exec nsenter -t "\$(cat "$scratch/\$host.pid")" -n -m -u -i -p -- /bin/sh -c "\$*"
END
chmod +x "$scratch/agent"

hosts=node0:$n_ranks
for ((i = 1; i < n_nodes; i++)); do hosts+=",node$i:$n_ranks"; done
case "$implementation" in
mpich)
    # Hydra's agents find the launcher by the name of its host. UCX_TLS is not set: with tcp,self alone, one in
    # four runs of a plain program does not end in MPI_Finalize (MPICH 4.0, UCX 1.13).
    export UCX_NET_DEVICES=eth0 UCX_LOG_LEVEL=error MPIR_CVAR_POLLS_BEFORE_YIELD=1
    options=(-launcher rsh -launcher-exec "$scratch/agent" -hosts "$hosts" -iface bridge)
    ;;
*)
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    options=(--mca plm_rsh_agent "$scratch/agent" --mca oob_tcp_if_include 10.77.0.0/24 --mca btl 'self,vader,tcp'
        --mca btl_tcp_if_include 10.77.0.0/24 --mca mpi_yield_when_idle 1 --mca btl_vader_single_copy_mechanism none
        --mca orte_keep_fqdn_hostnames 1 --host "$hosts" --oversubscribe
        -x NODES_N -x SHMVIEW_DAEMON -x SHMVIEW_CONFIG -x XDG_RUNTIME_DIR -x TMPDIR)
    ;;
esac
status=0
unset SHMVIEW_SOCKET
export NODES_N=$n_nodes # for the program
# A script runs here instead, and starts programs on the nodes by $NODES_RUN.
export NODES_RUN=$scratch/run-ranks NODES_SCRATCH=$scratch
{
    printf '#!/bin/bash\nexec'
    printf ' %q' "$mpiexec" "${options[@]}" -n "$((n_nodes * n_ranks))"
    printf ' "$@" < /dev/null\n'
} > "$NODES_RUN"
chmod +x "$NODES_RUN"
[[ $1 == *.sh ]] || set -- "$NODES_RUN" "$@"
timeout -k 5 "${NODES_LIMIT_S:-280}" "$@" || status=$?
# Prints the objects of segments on a node.
objects() {
    nsenter -t "$(cat "$scratch/node$1.pid")" -m -p \
        find /dev/shm -path '*/shmview.*/*' -type f ! -name '+daemon' ! -path '*/+presence/*' || true
}
for ((i = 0; i < n_nodes; i++)); do
    # The daemon may need a moment to see that its clients have ended.
    for _ in {1..200}; do
        left=$(objects "$i")
        [ -n "$left" ] || break
        sleep 0.1
    done
    if [ -n "$left" ]; then
        echo "node$i: objects are left in /dev/shm:" >&2
        echo "$left" >&2
        status=1
    fi
done
exit "$status"
