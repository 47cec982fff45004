/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs, in the order of shmviewctl --help. Each is "struct verb verb_NAME" in a file of its
 * own, or of a few that belong together. */
VERB_GROUP("Segments")
VERB(list)
VERB(show)
VERB(create)
VERB(define)
VERB(remove)
VERB(chmod)
VERB(chown)
VERB(switch)
VERB(wait)
VERB_GROUP("Locks and processes")
VERB(lock)
VERB(run)
VERB(who)
VERB(monitor)
VERB(metrics)
