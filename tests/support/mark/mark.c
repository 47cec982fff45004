/* SPDX-License-Identifier: Apache-2.0 */
/* In place of check's own function in a build with SHMVIEW_FAST. That one writes the line of each
 * assertion that holds to a file, for the report of a test that ends by a signal, which takes most
 * of the time of a test with many assertions. Without it the report has the line of the test. */

void __wrap__mark_point(const char *file, int line); /* NOLINT: the linker chooses this name */

void __wrap__mark_point(const char *file, int line) /* NOLINT */
{
    (void)file;
    (void)line;
}
