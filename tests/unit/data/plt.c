int first(int);
int second(int);
int _Z5thirdi(int);
__attribute__((visibility("default"))) int caller(int x) { return first(x) + second(x) + _Z5thirdi(x); }
