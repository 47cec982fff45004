/* SPDX-License-Identifier: Apache-2.0 */
/* stream.hpp: frames of a stream that a process has damaged. */
#include "support.hpp"

#include <shmview/stream.hpp>

#include <cstring>

static struct daemon d;

/* Stores entries of later frames in all cells of the ring, so that no number is free. */
static void damage(const shmview::stream &stream)
{
    auto *bytes = static_cast<unsigned char *>(shmview_data(shmview_stream_segment(stream.get())));
    shmview_stream_header header;
    std::memcpy(&header, bytes, sizeof header);
    std::memset(bytes + header.stages_offset + sizeof(shmview_stream_stage), 0x7f,
                header.n_cells * sizeof(std::uint64_t));
}

START_TEST(a_frame_that_cannot_be_published)
{
    shmview_view_spec view{};
    view.name = "gain";
    view.format = "float32";
    shmview_stream_spec spec{};
    spec.struct_bytes = sizeof spec;
    spec.mode = SHMVIEW_LATEST;
    spec.n_slots = 2;
    spec.views = &view;
    spec.n_views = 1;
    daemon_start(&d);
    {
        shmview::connection conn;
        shmview::stream writer;
        OK(shmview::connect(conn, d.socket));
        OK(shmview::create(conn, "s", spec, writer));
        shmview::frame one = writer.loan(0), two = writer.loan(0);
        ck_assert(one && two);
        damage(writer);
        REFUSED(one.publish(), LAYOUT_VERSION, "is damaged");
        REFUSED(two.publish_kept(), LAYOUT_VERSION, "is damaged");
        ck_assert(!one && !two);
        OK(writer.close()); /* which has all its slots back */
    }
    daemon_stop(&d);
}
END_TEST

int main()
{
    const suite_test tests[] = {
        SUITE_TEST(a_frame_that_cannot_be_published),
        SUITE_END,
    };
    return suite_main("cpp_damage", tests);
}
