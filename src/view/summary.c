/* Write a recording's summary as text and as JSON. */
#include "view/numbers.h"
#include "view/view.h"

static const char *const mode_names[SUMMARY_MODES] = {"unknown",    "kernel",       "user",
                                                      "hypervisor", "guest-kernel", "guest-user"};

typedef void add_key(struct buffer *text, const struct summary_count *row, bool json);

static void add_type(struct buffer *text, const struct summary_count *row, bool json) {
    const char *name = perfdata_record_name((uint32_t)row->key[0]);
    if (json)
        buffer_printf(text, "\"type\":%llu,\"name\":\"%s\"", (unsigned long long)row->key[0], name);
    else
        buffer_printf(text, "%s (%llu)", name, (unsigned long long)row->key[0]);
}

static void add_thread(struct buffer *text, const struct summary_count *row, bool json) {
    buffer_printf(text, json ? "\"pid\":%d,\"tid\":%d" : "%d/%d", (int32_t)row->key[0],
                  (int32_t)row->key[1]);
}

static void add_leaf(struct buffer *text, const struct summary_count *row, bool json) {
    buffer_printf(text, json ? "\"ip\":\"0x%016llx\"" : "0x%016llx",
                  (unsigned long long)row->key[0]);
}

static void add_edge(struct buffer *text, const struct summary_count *row, bool json) {
    buffer_printf(
        text, json ? "\"caller\":\"0x%016llx\",\"callee\":\"0x%016llx\"" : "0x%016llx -> 0x%016llx",
        (unsigned long long)row->key[0], (unsigned long long)row->key[1]);
}

static size_t shown(const struct summary_counts *counts, size_t limit) {
    return limit && limit < counts->rows.count ? limit : counts->rows.count;
}

/* ---- JSON ---- */

static void json_rows(struct buffer *text, const char *name, const struct summary_counts *counts,
                      size_t limit, add_key *add) {
    buffer_printf(text, ",\n\"%s\":[", name);
    for (size_t i = 0; i < shown(counts, limit); i++) {
        const struct summary_count *row = &counts->rows.items[i];
        buffer_add(text, i ? TEXT(",\n{") : TEXT("\n{"));
        add(text, row, true);
        if (add == add_type)
            buffer_printf(text, ",\"records\":%llu}", (unsigned long long)row->samples);
        else
            buffer_printf(text, ",\"samples\":%llu,\"weight\":%llu}",
                          (unsigned long long)row->samples, (unsigned long long)row->weight);
    }
    buffer_add_char(text, ']');
}

static void json_modes(struct buffer *text, const struct summary *s) {
    const char *between = "";
    buffer_add(text, TEXT(",\n\"sample_modes\":["));
    for (unsigned i = 0; i < SUMMARY_MODES; i++) {
        if (!s->modes[i].samples)
            continue;
        buffer_printf(text, "%s\n{\"mode\":%u,\"name\":\"%s\",\"samples\":%llu,\"weight\":%llu}",
                      between, i, mode_names[i], (unsigned long long)s->modes[i].samples,
                      (unsigned long long)s->modes[i].weight);
        between = ",";
    }
    buffer_add_char(text, ']');
}

static void write_json(struct buffer *text, const struct summary *s, size_t limit) {
    const struct {
        const char *name;
        uint64_t value;
    } numbers[] = {{"total_records", s->records},
                   {"total_samples", s->samples},
                   {"weighted_samples", s->weight},
                   {"unknown_samples", s->unknown},
                   {"lost_records", s->lost_records},
                   {"lost_samples", s->lost},
                   {"user_stack_samples", s->stack_samples},
                   {"user_stack_bytes", s->stack_bytes},
                   {"user_stack_dynamic_bytes", s->stack_dynamic_bytes},
                   {"user_register_samples", s->register_samples},
                   {"user_register_ip_samples", s->register_ip_samples}};
    for (size_t i = 0; i < COUNT_OF(numbers); i++)
        buffer_printf(text, "%s\"%s\":%llu", i ? ",\n" : "{", numbers[i].name,
                      (unsigned long long)numbers[i].value);
    json_rows(text, "record_types", &s->types, 0, add_type);
    json_modes(text, s);
    json_rows(text, "threads", &s->threads, limit, add_thread);
    json_rows(text, "top_leaf_ips", &s->leaves, limit, add_leaf);
    json_rows(text, "top_edges", &s->edges, limit, add_edge);
    buffer_add(text, TEXT("}\n"));
}

/* ---- text ---- */

static void text_rows(struct buffer *text, const char *title, const struct summary *s,
                      const struct summary_counts *counts, size_t limit, add_key *add) {
    if (counts->rows.count)
        buffer_printf(text, "\n%s\n", title);
    for (size_t i = 0; i < shown(counts, limit); i++) {
        const struct summary_count *row = &counts->rows.items[i];
        buffer_printf(text, "%12llu", (unsigned long long)row->samples);
        if (add != add_type)
            buffer_printf(text, " %6.2f %%", per_cent(row->weight, s->weight));
        buffer_add(text, TEXT("  "));
        add(text, row, false);
        buffer_add_char(text, '\n');
    }
    if (shown(counts, limit) < counts->rows.count)
        buffer_printf(text, "… and %zu more; --limit 0 shows all\n",
                      counts->rows.count - shown(counts, limit));
}

static void text_numbers(struct buffer *text, const struct summary *s) {
    buffer_printf(text, "%-16s %llu\n", "Records:", (unsigned long long)s->records);
    buffer_printf(text, "%-16s %llu, weighing %llu\n", "Samples:", (unsigned long long)s->samples,
                  (unsigned long long)s->weight);
    if (s->unknown)
        buffer_printf(text, "%-16s %llu samples\n", "Of no event:", (unsigned long long)s->unknown);
    buffer_printf(text, "%-16s %llu, in %llu records\n", "Lost:", (unsigned long long)s->lost,
                  (unsigned long long)s->lost_records);
    buffer_printf(text, "%-16s %llu samples, %llu bytes, %llu of them in use\n",
                  "User stacks:", (unsigned long long)s->stack_samples,
                  (unsigned long long)s->stack_bytes, (unsigned long long)s->stack_dynamic_bytes);
    buffer_printf(text, "%-16s %llu samples, %llu with the instruction pointer\n",
                  "User registers:", (unsigned long long)s->register_samples,
                  (unsigned long long)s->register_ip_samples);
}

static void write_text(struct buffer *text, const struct summary *s, size_t limit) {
    text_numbers(text, s);
    text_rows(text, "Records by type", s, &s->types, 0, add_type);
    buffer_add(text, s->samples ? TEXT("\nSamples by mode\n") : TEXT(""));
    for (unsigned i = 0; i < SUMMARY_MODES; i++)
        if (s->modes[i].samples)
            buffer_printf(text, "%12llu %6.2f %%  %s\n", (unsigned long long)s->modes[i].samples,
                          per_cent(s->modes[i].weight, s->weight), mode_names[i]);
    text_rows(text, "Threads (pid/tid)", s, &s->threads, limit, add_thread);
    text_rows(text, "Innermost addresses", s, &s->leaves, limit, add_leaf);
    text_rows(text, "Calls (caller -> callee)", s, &s->edges, limit, add_edge);
}

void summary_write(struct out *out, const struct summary *summary, bool json, size_t limit) {
    struct buffer text = {0};
    (json ? write_json : write_text)(&text, summary, limit);
    out_text(out, buffer_text(&text));
    buffer_release(&text);
}
