/* wick record: start the recording that recording.c has set up, and choose its output. */
#include "cmd/recording.h"

#include <stdio.h>
#include <string.h>

struct record_command {
    struct recording_request r;
    uint32_t compress_level;
};

static const struct option options_recording[] = {
    {"output", 'o', OPTION_TEXT, ASKED(output), "FILE",
     "output file (default: perf.data; - writes a stream to standard output)"},
    {"compress", 'z', OPTION_COUNT, IN(struct record_command, compress_level), "LEVEL",
     "compress with zstd, level 1 (fast) to 19"},
    {"buffer", 'm', OPTION_CALL, CALL(recording_set_buffer), "SIZE",
     "size of each CPU's ring buffer: 512K, 8M, …"},
    {"quiet", 'q', OPTION_FLAG, ASKED(quiet), NULL, "print only errors"},
    {0},
};

static const struct option_group groups[] = {
    {"Target", options_target}, {"Sampling", options_sampling}, {"Waiting", options_off_cpu},
    {"Memory", options_heap},   {"Output", options_recording},  {0},
};

static const struct syntax syntax = {
    "record",
    "-- COMMAND… | -p PID | -a",
    "Record a program to a perf.data that wick, perf and hotspot can read. Ctrl-C stops "
    "recording\nand keeps what was recorded.",
    groups,
    .examples = "wick record -- ./program\n"
                "wick record -p 1234 --duration 10 -o perf.data\n"
                "wick record -a --off-cpu --duration 5          # where the system waits",
    .takes_command = true,
};

static int run(void *command, int argc, char **argv) {
    struct record_command *record = command;
    struct request *request = &record->r.request;
    struct record_options *recording = &record->r.recording;
    recording_begin(&record->r);
    int status = 0;
    if (!options_parse(&syntax, record, argc, argv, &status))
        return status;
    if ((status = recording_settle(&record->r, argv)))
        return status;
    if (record->compress_level > 19)
        return fail_usage("record", "--compress goes up to 19");
    recording->compress_level = (int)record->compress_level;
    recording->output = request->output ? request->output : "perf.data";
    if (recording->keep == KEEP_ALL && strcmp(recording->output, "-") == 0)
        return fail_usage("record", "--keep=all needs a file: a stream cannot be read again");
    struct record_result result;
    struct error error;
    recording_say_cost(&record->r);
    bool fine = record_run(recording, &result, &error);
    bool unread = !fine && strcmp(recording->output, "-") == 0 && reader_is_gone();
    status = fine ? recording_target_status(recording, &result) : unread ? 0 : fail(&error);
    const char *plural = result.samples == 1 ? "" : "s";
    bool large = result.bytes >= 1000000;
    if (fine && !request->quiet)
        say_line(large ? "%llu sample%s of %s in %s (%.1f MB)"
                       : "%llu sample%s of %s in %s (%.0f kB)",
                 (unsigned long long)result.samples, plural, result.events,
                 strcmp(recording->output, "-") == 0 ? "the stream" : recording->output,
                 (double)result.bytes / (large ? 1e6 : 1e3));
    if (!fine && result.samples && strcmp(recording->output, "-") != 0)
        say_line("what was recorded before that, %llu sample%s, is in %s",
                 (unsigned long long)result.samples, plural,
                 result.left ? result.left : recording->output);
    print_notes(request, &result.notes);
    record_result_release(&result);
    return status;
}

const struct command command_record = {"record",
                                       "record a program, a process or the system to a perf.data",
                                       sizeof(struct record_command),
                                       run,
                                       .gentle = 2,
                                       .group = GROUP_RECORD};
