/* Names of functions in which stacks begin. */
#include "unwind/internal.h"
#include "unwind/unwind.h"

/* Runs for every stack. A hostile program's names may be megabytes long, so that only as much is searched as the longest of `names` has. */
static bool is_one_of(struct text name, const struct text *names, size_t count) {
    enum { NAME_MOST = 64 };
    size_t version = text_find(name.length > NAME_MOST ? text_upto(name, NAME_MOST) : name, '@');
    if (version != SIZE_MAX)
        name = text_upto(name, version);
    for (size_t i = 0; i < count; i++)
        if (text_equal(name, names[i]))
            return true;
    return false;
}

bool unwind_is_start(struct text name) {
    static const struct text names[] = {
        TEXT("_start"), TEXT("__clone"), TEXT("clone"), TEXT("__clone3"), TEXT("clone3"),
        TEXT("__GI___clone"), TEXT("__GI___clone3"), TEXT("__thread_start"), TEXT("thread_start"),
        TEXT("_dl_start_user"), TEXT("libc_start_main_stage2"), /* musl's, which has no rules */
        TEXT("runtime.goexit"), TEXT("runtime.goexit.abi0"), TEXT("runtime.mstart"),
        TEXT("runtime.mstart.abi0"), TEXT("runtime.rt0_go"), TEXT("runtime.rt0_go.abi0"),
        TEXT("_rt0_amd64"), TEXT("_rt0_amd64_linux"), TEXT("_rt0_arm64_linux"),
        TEXT("ret_from_fork"), TEXT("ret_from_fork_asm"),
        /* A process of the Erlang VM, with and without what it puts before names in perf maps. */
        TEXT("erts_beamasm:normal_exit/0"), TEXT("erts_beamasm:normal_exit/0-CodeInfoPrologue"),
        TEXT("$erts_beamasm:normal_exit/0"), TEXT("$erts_beamasm:normal_exit/0-CodeInfoPrologue"),
        /* Idle CPUs. */
        TEXT("secondary_startup_64"), TEXT("secondary_startup_64_no_verify"),
        TEXT("common_startup_64"), TEXT("__secondary_switched"), TEXT("__primary_switched")};
    return is_one_of(name, names, COUNT_OF(names));
}

bool unwind_is_switch(struct text name) {
    static const struct text names[] = {
        TEXT("runtime.systemstack"), TEXT("runtime.systemstack.abi0"),
        TEXT("runtime.mcall"),       TEXT("runtime.mcall.abi0"),
        TEXT("runtime.morestack"),   TEXT("runtime.morestack.abi0"),
        TEXT("runtime.asmcgocall"),  TEXT("runtime.asmcgocall.abi0")};
    return is_one_of(name, names, COUNT_OF(names));
}

bool unwind_is_first_by_frame_pointer(struct text name) {
    static const struct text names[] = {
        /* Go clears the frame pointer there, as the goroutine may go on elsewhere. */
        TEXT("runtime.mcall"),          TEXT("runtime.mcall.abi0"), TEXT("runtime.morestack"),
        TEXT("runtime.morestack.abi0"), TEXT("__libc_start_main"),  TEXT("__libc_start_call_main"),
        TEXT("__libc_start_main_impl"), TEXT("start_thread")};
    return unwind_is_start(name) || is_one_of(name, names, COUNT_OF(names));
}
