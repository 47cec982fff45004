#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Tests the service as it is installed, under a real systemd: tests/systemd/service.sh in a
# container.
# shellcheck source=tests/systemd/container.sh
. "${SHMVIEW_SOURCE_DIR:?}/tests/systemd/container.sh"

fill_container() {
    DESTDIR=$root "${CMAKE:-cmake}" --install "$build" --prefix /usr > "$out/install"
}
run_container service.sh
