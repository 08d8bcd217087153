import java.util.ArrayList;
import java.util.List;
import java.util.function.LongUnaryOperator;

/** usage: java Shares ROUNDS SEED [PAUSE]: work in known shares (heavy 50 %, medium 30 %, light 20 %), while another thread allocates. Rests PAUSE ms after every
    hundredth round. Exits with 7. */
public class Shares {
    static long work(long units, long seed) {
        long sum = seed;
        for (long i = 0; i < units * 1000; i++)
            sum = sum * 6364136223846793005L + (i ^ sum >>> 7);
        return sum;
    }

    static long heavy(long seed) {
        return work(5, seed);
    }

    static long medium(long seed) {
        LongUnaryOperator operator = value -> work(3, value);
        return operator.applyAsLong(seed);
    }

    static long light(int depth, long seed) {
        return depth == 0 ? work(2, seed) : light(depth - 1, seed) + 1;
    }

    static void rest(long pause) throws InterruptedException {
        Thread.sleep(pause);
    }

    static volatile boolean done;

    static long garbage() {
        long length = 0;
        while (!done) {
            List<String> list = new ArrayList<>();
            for (int i = 0; i < 500; i++)
                list.add("item " + i);
            length += list.size();
            Thread.yield();
        }
        return length;
    }

    public static void main(String[] arguments) throws Exception {
        long rounds = Long.parseLong(arguments[0]), sum = Long.parseLong(arguments[1]);
        long pause = arguments.length > 2 ? Long.parseLong(arguments[2]) : 0;
        Thread other = new Thread(Shares::garbage, "garbage");
        other.start();
        System.out.println("begin");
        for (long round = 0; round < rounds; round++) {
            sum += heavy(sum) + medium(sum) + light(20, sum);
            if (pause > 0 && round % 100 == 0)
                rest(pause);
        }
        done = true;
        other.join();
        System.out.println("sum " + sum);
        System.err.println("end");
        System.exit(7);
    }
}
