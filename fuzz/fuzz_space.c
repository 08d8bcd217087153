/* Address spaces: bytes become operations, the answers are checked against a simple model. */
#include "../tests/unit/space_model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    model_run(data, size);
    return 0;
}
