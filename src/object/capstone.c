#include "object/capstone.h"

#ifdef HAVE_CAPSTONE
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>

static struct capstone functions;
static bool is_loaded;

#define FUNCTION(name) functions.name = (__typeof__(functions.name))dlsym(library, "cs_" #name)

static void load(void) {
    void *library = dlopen(CAPSTONE_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return;
    FUNCTION(open);
    FUNCTION(close);
    FUNCTION(option);
    FUNCTION(malloc);
    FUNCTION(free);
    FUNCTION(disasm_iter);
    FUNCTION(insn_group);
    is_loaded = functions.open && functions.close && functions.option && functions.malloc &&
                functions.free && functions.disasm_iter && functions.insn_group;
}

const struct capstone *capstone(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    return is_loaded ? &functions : NULL;
}
#endif
