/** Usage: Deep MILLISECONDS. Works at the end of many calls, as compilers and frameworks do. Interpreted (-Xint), the stack needs between 16 and 32 kB. */
public class Deep {
    static long sum;

    static void down(int depth, long a, long b, long c, long d, long e, long f) {
        if (depth > 0) {
            down(depth - 1, b, c, d, e, f, a + depth);
            sum += a ^ b ^ c;
            return;
        }
        for (int i = 0; i < 20000; i++)
            sum += (a + i) * (b ^ i) + c % (i + 1) + d + e + f;
    }

    public static void main(String[] words) {
        long end = System.nanoTime() + Long.parseLong(words[0]) * 1000000;
        while (System.nanoTime() < end)
            down(150, 1, 2, 3, 4, 5, 6);
    }
}
