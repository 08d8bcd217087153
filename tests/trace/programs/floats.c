/* Floating point: the library's functions, rounding modes, and printing of the results. */
#include <fenv.h>
#include <math.h>
#include <stdio.h>
int main(void) {
    static const int modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
    double sum = 0;
    float single = 1;
    for (int i = 1; i < 200; i++) {
        fesetround(modes[i % 4]);
        sum += sin(i) * exp(-i / 50.0) + log(i) / sqrt(i) + pow(i, 0.3) + fma(i, 1.1, sum);
        single = single * 1.01f + (float)i / 3;
        sum = fmod(sum, 1000);
    }
    fesetround(FE_TONEAREST);
    printf("%.17g %.9g %d\n", sum, (double)single, fetestexcept(FE_INEXACT) != 0);
    return 0;
}
