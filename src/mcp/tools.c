#include "mcp/tools.h"

#include <stdlib.h>

#define PROFILE                                                                                    \
    { "profile", ARGUMENT_PROFILE, NULL, true, "a name that list_profiles gave" }
#define FOCUS                                                                                      \
    {                                                                                              \
        "focus", ARGUMENT_TEXT, "focus", false,                                                    \
            "only stacks through functions that this regular expression matches"                   \
    }
#define EVENT                                                                                      \
    { "event", ARGUMENT_TEXT, "event", false, "which event, where the profile has several" }

const struct tool tools[] = {
    {"list_profiles", "Lists the profiles that can be asked about, newest first.", {0}, {{0}}},
    {"top_functions",
     "Says where the cost is: a table of functions (or of lines, objects, modules, threads) with "
     "self (spent in it) and "
     "total (spent in it and in what it calls), in per cent of the whole. The last line has the "
     "whole and its unit.",
     {"report"},
     {PROFILE,
      {"by", ARGUMENT_TEXT, "by", false,
       "function (default), line, object, module, category, process, thread, or a label's key"},
      {"sort", ARGUMENT_TEXT, "sort", false, "self or total"},
      {"limit", ARGUMENT_NUMBER, "limit", false, "rows; 30 by default"},
      FOCUS,
      EVENT}},
    {"call_tree",
     "The call tree from the root, indented: total and self of each frame in per cent of the "
     "whole.",
     {"report", "--tree"},
     {PROFILE,
      {"threshold", ARGUMENT_NUMBER, "threshold", false, "leave out less than this per cent; 0.5"},
      {"depth", ARGUMENT_NUMBER, "depth", false, "as deep as this"},
      FOCUS,
      EVENT}},
    {"callers",
     "Who calls a function: the tree of its callers, with what they cost through it.",
     {"report"},
     {PROFILE,
      {"function", ARGUMENT_TEXT, "callers", true, "its name, as top_functions prints it"},
      {"depth", ARGUMENT_NUMBER, "depth", false, "as deep as this"},
      EVENT}},
    {"callees",
     "What a function calls: the tree below it, with what that costs.",
     {"report"},
     {PROFILE,
      {"function", ARGUMENT_TEXT, "callees", true, "its name, as top_functions prints it"},
      {"depth", ARGUMENT_NUMBER, "depth", false, "as deep as this"},
      EVENT}},
    {"annotate",
     "The source lines and the machine code of a function with the share of each, where the "
     "profile holds or finds them.",
     {"annotate"},
     {PROFILE,
      {"function", ARGUMENT_TEXT, NULL, true, "its name, as top_functions prints it"},
      EVENT}},
    {"diff",
     "What costs more or less in one profile than in another: a table of the functions that "
     "changed most.",
     {"diff", "--table"},
     {{"before", ARGUMENT_PROFILE, NULL, true, "a name that list_profiles gave"},
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
