/* Export any profile: the first byte chooses the format, the second the options, the rest is read. */
#include "export/export.h"
#include "import/import.h"
#include "profile/profile.h"
#include "view/view.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write_all(const struct tree *tree, uint8_t choice, uint8_t bits) {
    size_t formats = 0;
    while (export_formats[formats].name)
        formats++;
    struct naming *naming = naming_of_tree(
        tree,
        &(struct naming_options){.no_comm = true, .show_state = bits & 1, .is_script_text = true});
    struct flame_options shape = {
        .by_samples = bits & 2, .fold_recursion = bits & 4, .max_depth = bits & 8 ? 2 : 0};
    struct export_options options = {.shape = &shape,
                                     .title = "fuzz",
                                     .measure = bits & 16 ? "wall" : NULL,
                                     .notes = &tree->notes};
    struct error error = {0};
    struct out out;
    if (out_open(&out, "/dev/null", &error)) {
        bool fine =
            export_write(&out, &export_formats[choice % formats], tree, naming, &options, &error);
        assert(fine == !error.kind);
        out_discard(&out);
    }
    naming_free(naming);
}

static void read_recording(struct text content, uint8_t choice, uint8_t bits) {
    struct file file = {
        .path = (char *)"fuzz", .data = (const uint8_t *)content.data, .size = content.length};
    struct profile_options options = {.context =
                                          &(struct context){.threads = 1, .spool_limit = 16 << 20},
                                      .keep_samples = true,
                                      .all_events = true,
                                      .no_names = true,
                                      .times = bits >> 5 & 3 ? (bits >> 5 & 3) - 1 : 0,
                                      .objects.kallsyms = "/dev/null"};
    struct error error = {0};
    struct profile *profile = profile_read(&file, &options, &error);
    if (profile)
        write_all(profile->tree, choice, bits);
    profile_free(profile);
}

static void read_text(struct text content, uint8_t choice, uint8_t bits) {
    const struct import_format *format = import_guess(content);
    struct import_options options = {
        .profile = {.context = &(struct context){.threads = 1}, .keep_samples = bits & 32}};
    struct tree *tree = tree_new();
    struct error error = {0};
    tree->keep_samples = bits & 32;
    if (format && import_read(format, content, "fuzz", &options, tree, &error))
        write_all(tree, choice, bits);
    objects_free(tree->objects);
    tree_free(tree);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2)
        return 0;
    struct text content = {(const char *)data + 2, size - 2};
    if (perfdata_is(content))
        read_recording(content, data[0], data[1]);
    else
        read_text(content, data[0], data[1]);
    return 0;
}
