#include "object/capstone.h"

#ifdef HAVE_CAPSTONE
#include <dlfcn.h>

#define FUNCTION(name) functions->name = (__typeof__(functions->name))dlsym(library, "cs_" #name)

bool capstone_load(struct capstone *functions) {
    void *library = dlopen(CAPSTONE_LIBRARY, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library)
        return false;
    FUNCTION(open);
    FUNCTION(close);
    FUNCTION(option);
    FUNCTION(malloc);
    FUNCTION(free);
    FUNCTION(disasm_iter);
    FUNCTION(insn_group);
    dlclose(library);
    return functions->open && functions->close && functions->option && functions->malloc &&
           functions->free && functions->disasm_iter && functions->insn_group;
}
#endif
