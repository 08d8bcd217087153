/* SHA-256 (FIPS 180-4), for digests of the profiled files. A few hundred megabytes a second is enough for that. */
#include "run/internal.h"

static const uint32_t constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t turn(uint32_t value, unsigned by) {
    return value >> by | value << (32 - by);
}

static void mix_block(uint32_t state[8], const uint8_t *block) {
    uint32_t words[64], s[8];
    for (unsigned i = 0; i < 16; i++)
        words[i] = __builtin_bswap32(load_u32(block + 4 * i));
    for (unsigned i = 16; i < 64; i++) {
        uint32_t a = words[i - 15], b = words[i - 2];
        words[i] = words[i - 16] + (turn(a, 7) ^ turn(a, 18) ^ a >> 3) + words[i - 7] +
                   (turn(b, 17) ^ turn(b, 19) ^ b >> 10);
    }
    memcpy(s, state, sizeof s);
    for (unsigned i = 0; i < 64; i++) {
        uint32_t choice = (s[4] & s[5]) ^ (~s[4] & s[6]),
                 majority = (s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]);
        uint32_t first = s[7] + (turn(s[4], 6) ^ turn(s[4], 11) ^ turn(s[4], 25)) + choice +
                         constants[i] + words[i];
        uint32_t second = (turn(s[0], 2) ^ turn(s[0], 13) ^ turn(s[0], 22)) + majority;
        memmove(s + 1, s, 7 * sizeof *s);
        s[4] += first;
        s[0] = first + second;
    }
    for (unsigned i = 0; i < 8; i++)
        state[i] += s[i];
}

void sha256_hex(const uint8_t *data, size_t size, char hex[65]) {
    uint32_t state[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                         0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    size_t whole = size / 64 * 64, rest = size - whole;
    uint8_t last[128] = {0};
    for (size_t i = 0; i < whole; i += 64)
        mix_block(state, data + i);
    memcpy(last, data + whole, rest);
    last[rest] = 0x80;
    size_t blocks = rest < 56 ? 64 : 128;
    uint64_t bits = __builtin_bswap64((uint64_t)size * 8);
    memcpy(last + blocks - 8, &bits, sizeof bits);
    for (size_t i = 0; i < blocks; i += 64)
        mix_block(state, last + i);
    for (unsigned i = 0; i < 64; i++)
        hex[i] = "0123456789abcdef"[state[i / 8] >> (28 - i % 8 * 4) & 15];
    hex[64] = 0;
}
