/* How an attempt's output lies on disk, shared by its writer (the supervisor) and its readers.
 *
 * NAME holds the first `head` bytes. What follows goes to the segments NAME.t0 and NAME.t1 in
 * turn: each has room for `tail` bytes behind a header of fixed size, the older one is truncated
 * when the newer is full. When the job has ended, the kept tail is appended to NAME behind a marker
 * that says how much is missing, and the segments go. As each header tells `head`, a reader takes
 * just that much of NAME while a segment exists: right at every moment, also after a crash. */
#ifndef PAWL_PROCESS_JOBLOG_FORMAT_H
#define PAWL_PROCESS_JOBLOG_FORMAT_H

enum { JOBLOG_HEADER_BYTES = 64, JOBLOG_MARKER_MAX = 64 };
/* head, offset of the segment's first byte in the whole output; padded with spaces, LF at the end
 */
#define JOBLOG_HEADER_FORMAT "pawl-tail head=%lld offset=%lld"
#define JOBLOG_MARKER_FORMAT "\n[... %lld bytes left out ...]\n"

#endif
