// SPDX-License-Identifier: Apache-2.0
// Starts the processes of browser.mjs, prints their ids, and waits until somebody ends it (end.sh).

import { start, startBrowser, startDaemon, startServer } from "./processes.mjs";

const daemon = await startDaemon();
const server = await startServer();
const browser = await startBrowser();
const other = start("/bin/sleep", ["600"]);
console.log(`pids ${[process.pid, daemon.pid, server.pid, other.pid].join(" ")}`);
await new Promise((resolve) => browser.on("disconnected", resolve));
// nobody ends the others here: they must end with this process
process.exit(1);
