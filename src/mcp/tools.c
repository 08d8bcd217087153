#include "mcp/tools.h"

#include <stdlib.h>

#define PROFILE                                                                                    \
    { "profile", ARGUMENT_PROFILE, NULL, true, "a name from list_profiles" }
#define FOCUS                                                                                      \
    {                                                                                              \
        "focus", ARGUMENT_TEXT, "focus", false,                                                    \
            "only stacks with a function that matches this regular expression"                     \
    }
#define EVENT                                                                                      \
    { "event", ARGUMENT_TEXT, "event", false, "the event, if the profile has several" }

const struct tool tools[] = {
    {"list_profiles", "List the available profiles, newest first.", {0}, {{0}}},
    {"top_functions",
     "Show where the cost is: a table of functions (or lines, objects, modules, threads) with self "
     "cost and total cost (callees included), in per cent of the profile's total. The last line "
     "has that total and its unit.",
     {"report"},
     {PROFILE,
      {"by", ARGUMENT_TEXT, "by", false,
       "function (default), line, object, module, category, process, thread, or a label's key"},
      {"sort", ARGUMENT_TEXT, "sort", false, "self or total"},
      {"limit", ARGUMENT_NUMBER, "limit", false, "rows; 30 by default"},
      FOCUS,
      EVENT}},
    {"call_tree",
     "Show the call tree from the root, indented: total and self of each frame in per cent of the "
     "profile's total.",
     {"report", "--tree"},
     {PROFILE,
      {"threshold", ARGUMENT_NUMBER, "threshold", false,
       "omit frames below this per cent; default 0.5"},
      {"depth", ARGUMENT_NUMBER, "depth", false, "maximum depth"},
      FOCUS,
      EVENT}},
    {"callers",
     "Show the callers of a function: the tree of its callers, with the cost through each.",
     {"report"},
     {PROFILE,
      {"function", ARGUMENT_TEXT, "callers", true, "its name, as top_functions prints it"},
      {"depth", ARGUMENT_NUMBER, "depth", false, "maximum depth"},
      EVENT}},
    {"callees",
     "Show the callees of a function: the tree below it, with the cost of each.",
     {"report"},
     {PROFILE,
      {"function", ARGUMENT_TEXT, "callees", true, "its name, as top_functions prints it"},
      {"depth", ARGUMENT_NUMBER, "depth", false, "maximum depth"},
      EVENT}},
    {"annotate",
     "Show the source lines and the machine code of a function with the share of each, if they are "
     "available.",
     {"annotate"},
     {PROFILE,
      {"function", ARGUMENT_TEXT, NULL, true, "its name, as top_functions prints it"},
      EVENT}},
    {"diff",
     "Compare two profiles: a table of the functions that changed most.",
     {"diff", "--table"},
     {{"before", ARGUMENT_PROFILE, NULL, true, "a name from list_profiles"},
      {"after", ARGUMENT_PROFILE, NULL, true, "another"},
      {"limit", ARGUMENT_NUMBER, "limit", false, "rows"},
      FOCUS,
      EVENT}},
};
const size_t tool_count = COUNT_OF(tools);

void given_release(struct given *given) {
    for (size_t i = 0; i < COUNT_OF(given->values); i++)
        free(given->values[i]);
}
