/* wick report --summary: count the records of any bytes in file order, and print them both ways. */
#include "perfdata/perfdata.h"
#include "profile/profile.h"
#include "view/view.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    struct file file = {.path = (char *)"fuzz", .data = bytes, .size = size};
    const struct context context = {.spool_limit = 16 << 20};
    struct error error = {0};
    struct perfdata *data =
        perfdata_open(&file, &(struct perfdata_options){.context = &context}, &error);
    if (!data)
        return 0;
    struct summary summary = {0};
    if (summary_read(&summary, data, &error))
        for (int json = 0; json < 2; json++) {
            struct buffer text = {0};
            struct out out;
            out_open_buffer(&out, &text);
            summary_write(&out, &summary, json, 10);
            out_commit(&out, &error);
            buffer_release(&text);
        }
    summary_release(&summary);
    perfdata_free(data);
    return 0;
}
