/* SPDX-License-Identifier: Apache-2.0 */
/* Checks streams that the configuration declares: what they become, and the line that reports each
 * fault. */
#include "daemon/config/config_reader.h"
#include "unit/config_text.h"

#include <shmview/stream.h>

START_TEST(declared_streams)
{
    struct config *c =
        reads("{'segments':[{'name':'s','mode':'0640','stream':{'mode':'lossless','slots':8,"
              "'history':3,'stages':2,'writers':'many','views':["
              "{'name':'a','format':'uint8','shape':[3]},"
              "{'name':'b','format':'float64','shape':[2]}]}},\n"
              "{'name':'t','stream':{'mode':'latest','views':["
              "{'name':'a','format':'float32','shape':[2],'offset':256}]}}]}");
    const struct config_segment *s = config_find_segment(c, "s");
    const struct shmview_stream_header *h = &s->stream;
    ck_assert(s->is_stream && s->lock && s->access.mode == 0640);
    ck_assert_uint_eq(h->magic, SHMVIEW_STREAM_MAGIC);
    ck_assert(h->mode == SHMVIEW_LOSSLESS && h->n_slots == 8 && h->history == 3);
    ck_assert(h->n_stages == 2 && h->flags == SHMVIEW_MANY_WRITERS && h->n_views == 2);
    ck_assert_uint_eq(h->frame_bytes, 128);
    ck_assert_uint_eq(s->size, h->frames_offset + 8 * 128);
    ck_assert_uint_eq(s->n_layouts, 1);
    ck_assert_str_eq(s->layouts[0].name, "frame");
    ck_assert_uint_eq(s->layouts[0].n_views, 2);
    ck_assert_str_eq(s->layouts[0].views[0].format, "B");
    ck_assert_uint_eq(s->layouts[0].views[0].desc.offset, h->frames_offset);
    ck_assert_uint_eq(s->layouts[0].views[1].desc.offset, h->frames_offset + 64);
    s = config_find_segment(c, "t");
    h = &s->stream;
    ck_assert(h->mode == SHMVIEW_LATEST && h->n_slots == 8 && h->n_stages == 1);
    ck_assert(h->history == 0 && h->flags == 0);
    ck_assert_uint_eq(s->layouts[0].views[0].desc.offset, h->frames_offset + 256);
    ck_assert_uint_eq(h->frame_bytes, 384);
    config_free(c);
    c = reads("{'segments':[{'name':'s','size':1}]}");
    ck_assert(!c->segments[0].is_stream);
    config_free(c);
}
END_TEST

#define VIEW_A "{'name':'a','format':'B','shape':[1]}"

START_TEST(streams)
{
    refuses("{'segments':[{'name':'s','stream':1},\n{'name':'t','stream':{}}]}",
            "f:1: segments[0].stream must be an object\n"
            "f:2: segments[1].stream has no \"mode\"\n"
            "f:2: segments[1].stream has no \"views\"\n");
    refuses("{'segments':[{'name':'s','stream':{'mode':'fast',\n'slots':1,\n'history':-1,\n"
            "'stages':7,\n'writers':2,\n'views':[],\n'depth':1}}]}",
            "f:1: segments[0].stream.mode must be \"latest\" or \"lossless\"\n"
            "f:2: segments[0].stream.slots must be an integer from 2 to 512\n"
            "f:3: segments[0].stream.history must be an integer from 0 to 511\n"
            "f:4: segments[0].stream.stages must be an integer from 1 to 6\n"
            "f:5: segments[0].stream.writers must be \"one\" or \"many\"\n"
            "f:6: segments[0].stream.views must be an array of 1 to 64 views\n"
            "f:7: segments[0].stream.depth is not a known key\n");
    refuses("{'segments':[{'name':'s','size':1,\n'layouts':[],\n'lock':false,\n'stream':{'mode':"
            "'latest','views':[" VIEW_A
            "]}},\n{'name':'t','stream':{'mode':'latest','views':[" VIEW_A "]},\n'layouts':[]}]}",
            "f:1: segments[0].size follows from \"stream\", and must not be beside it\n"
            "f:2: segments[0].layouts follows from \"stream\", and must not be beside it\n"
            "f:3: segments[0].lock must be true, because a stream needs a lock\n"
            "f:6: segments[1].layouts follows from \"stream\", and must not be beside it\n");
    refuses("{'segments':[{'name':'s',\n'stream':{'mode':'latest','slots':4,'history':3,'views':"
            "[" VIEW_A "]}}]}",
            "f:2: segments[0].stream cannot be made: a history of 3 frames with 4 slots: "
            "1 stages would keep 4 slots, which leaves none for a writer\n");
    struct config *c = reads("{'segments':[{'name':'s','stream':{'mode':'lossless','slots':512,"
                             "'history':511,'views':[" VIEW_A "]}}]}");
    ck_assert_uint_eq(c->segments[0].stream.history, 511);
    config_free(c);
}
END_TEST

START_TEST(views_of_streams)
{
    refuses("{'segments':[{'name':'s','stream':{'mode':'latest','views':[" VIEW_A ",\n"
            "{'name':'b','format':'no','shape':[]}]}}]}",
            "f:2: segments[0].stream.views[1] does not fit: view 'b': format \"no\": character 1: "
            "'o' is no type code\n");
    refuses("{'segments':[{'name':'s','stream':{'mode':'latest','views':[" VIEW_A ",\n"
            "{'name':'b','format':'B','shape':'1'}]}}]}",
            "f:2: segments[0].stream.views[1].shape must be an array of integers\n");
    refuses("{'segments':[{'name':'s','stream':{'mode':'latest','views':[" VIEW_A ",\n"
            "{'name':'b','format':'B','shape':[1],'strides':[8],'suboffsets':[0]}]}}]}",
            "f:2: segments[0].stream.views[1] does not fit: view 'b': a view of a stream has no "
            "suboffsets, because each slot has other bytes\n");
    refuses("{'segments':[{'name':'s','stream':{'mode':'latest','views':[" VIEW_A ",\n" VIEW_A
            "]}}]}",
            "f:2: segments[0].stream.views[1] does not fit: layout.views has two views 'a'\n");
    refuses("{'segments':[{'name':'s',\n'stream':{'mode':'latest','slots':512,'views':["
            "{'name':'a','format':'B','shape':[281474976710656]}]}}]}",
            "f:2: segments[0].stream cannot be made: frames of 281474976710656 bytes\n");
}
END_TEST

START_TEST(members_of_wrong_values)
{
    static char many[8000];
    refuses("{'segments':[{'name':'s','stream':{'mode':1,\n'slots':513,\n'history':'1',\n"
            "'stages':0,\n'writers':'two',\n'views':{}}}]}",
            "f:1: segments[0].stream.mode must be \"latest\" or \"lossless\"\n"
            "f:2: segments[0].stream.slots must be an integer from 2 to 512\n"
            "f:3: segments[0].stream.history must be an integer from 0 to 511\n"
            "f:4: segments[0].stream.stages must be an integer from 1 to 6\n"
            "f:5: segments[0].stream.writers must be \"one\" or \"many\"\n"
            "f:6: segments[0].stream.views must be an array of 1 to 64 views\n");
    strcpy(many, "{'segments':[{'name':'s','stream':{'mode':'latest',\n'views':[");
    for (int i = 0; i < 65; i++)
        sprintf(many + strlen(many), "%s{'name':'v%d','format':'B','shape':[1]}", i ? "," : "", i);
    strcat(many, "]}}]}");
    refuses(many, "f:2: segments[0].stream.views must be an array of 1 to 64 views\n");
    refuses("{'segments':[{'name':'s','huge':'wanted','stream':{'mode':'latest','views':"
            "[" VIEW_A "]}}]}",
            "f:1: segments[0].huge must not be beside \"stream\"\n");
}
END_TEST

/* One key states each value of the defaults. */
START_TEST(defaults_by_name)
{
    struct config *c = reads("{'segments':[{'name':'s','lock':true,'stream':{'mode':'latest',"
                             "'writers':'one','views':[" VIEW_A "]}}]}");
    ck_assert_uint_eq(c->segments[0].stream.flags, 0);
    ck_assert(c->segments[0].lock);
    config_free(c);
}
END_TEST

/* Each view fits alone. */
START_TEST(too_large_together)
{
    refuses("{'segments':[{'name':'s',\n'stream':{'mode':'latest','slots':512,'views':["
            "{'name':'a','format':'B','shape':[140737488355328]}]}}]}",
            "f:2: segments[0].stream cannot be made: its slots have more than 2^56 bytes\n");
    refuses("{'segments':[{'name':'s',\n'stream':{'mode':'latest','views':["
            "{'name':'a','format':'B','shape':[72057594037927936]},"
            "{'name':'b','format':'B','shape':[72057594037927936]}]}}]}",
            "f:2: segments[0].stream cannot be made: the first element, 1 bytes at byte "
            "72057594037927936, lies outside the segment's 72057594037927936 bytes\n");
}
END_TEST

UNIT_MAIN("config_stream", UNIT_TEST(members_of_wrong_values), UNIT_TEST(defaults_by_name),
          UNIT_TEST(too_large_together), UNIT_TEST(declared_streams), UNIT_TEST(streams),
          UNIT_TEST(views_of_streams))
