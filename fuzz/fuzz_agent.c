/* Parse any bytes as lines of agent.conf. Accepted settings are described; parsing the description must give the same
   one. */
#include "agent/agent.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void take(struct agent_options *options, struct text rest, bool all) {
    struct error error;
    while (rest.length) {
        bool taken = agent_set(options, text_take_line(&rest), &error);
        if (all && !taken)
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct agent_options first, second;
    struct buffer one = {0}, two = {0};
    agent_options_init(&first);
    agent_options_init(&second);
    take(&first, (struct text){(const char *)data, size}, false);
    agent_describe(&first, &one);
    take(&second, buffer_text(&one), true);
    agent_describe(&second, &two);
    if (!text_equal(buffer_text(&one), buffer_text(&two)))
        abort();
    agent_options_release(&first);
    agent_options_release(&second);
    buffer_release(&one);
    buffer_release(&two);
    return 0;
}
