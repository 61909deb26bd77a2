package penstock.benchmarks;

import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.api.java.tuple.Tuple4;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/** The auction house of benchmarks/nexmark/events.py: of 50 events one is a person, three are auctions, 46 are bids. */
final class Events {

    private static final int A_ROUND = 50;
    private static final int PERSONS = 1;
    private static final int AUCTIONS = 3;
    private static final int FIRST_BID = PERSONS + AUCTIONS;
    private static final int ACTIVE_PEOPLE = 1_000;
    private static final int OPEN_AUCTIONS = 100;
    private static final String[] NAMES = {
        "Ada", "Alan", "Barbara", "Donald", "Edsger", "Frances", "Grace", "Leslie"
    };

    private static final int LOTS = 99_991;
    private static final boolean[] IS_HOT_AUCTION = new boolean[LOTS];
    private static final boolean[] IS_HOT_PERSON = new boolean[LOTS];
    private static final long[] PLACES = new long[LOTS];
    private static final long[] PRICES = new long[LOTS];

    static {
        SplitMix lots = new SplitMix(7);
        for (int lot = 0; lot < LOTS; lot++) {
            IS_HOT_AUCTION[lot] = lots.next() >>> 63 == 0;
        }
        for (int lot = 0; lot < LOTS; lot++) {
            IS_HOT_PERSON[lot] = lots.next() >>> 62 != 0;
        }
        for (int lot = 0; lot < LOTS; lot++) {
            PLACES[lot] = lots.next() >>> 34;
        }
        for (int lot = 0; lot < LOTS; lot++) {
            PRICES[lot] = price(lots.next() >>> 24);
        }
    }

    private Events() {}

    private static long price(long lot) {
        long unit = (long) Math.pow(10, lot % 4);
        return (lot / 4 % 900 + 100) * unit + lot / 3_600 % unit;
    }

    static boolean isPerson(long number) {
        return number % A_ROUND < PERSONS;
    }

    static boolean isAuction(long number) {
        return number % A_ROUND >= PERSONS && number % A_ROUND < FIRST_BID;
    }

    static boolean isBid(long number) {
        return number % A_ROUND >= FIRST_BID;
    }

    /** Its number and its name. */
    static Tuple2<Long, String> person(long number) {
        return Tuple2.of(number / A_ROUND, NAMES[(int) (PLACES[(int) (number % LOTS)] % NAMES.length)]);
    }

    static long seller(long number) {
        long newest = number / A_ROUND;
        int lot = (int) (number % LOTS);
        return IS_HOT_PERSON[lot] ? newest - newest % 100 : Math.max(newest - PLACES[lot] % ACTIVE_PEOPLE, 0);
    }

    /** Auction, bidder, price in cents and time in milliseconds. */
    static Tuple4<Long, Long, Long, Long> bid(long number) {
        long newest = number / A_ROUND;
        int lot = (int) (number % LOTS);
        long place = PLACES[lot];
        long opened = newest * AUCTIONS + AUCTIONS - 1;
        return Tuple4.of(
                IS_HOT_AUCTION[lot] ? opened - opened % 100 : Math.max(opened - place % OPEN_AUCTIONS, 0),
                IS_HOT_PERSON[lot] ? newest - newest % 100 + 1 : Math.max(newest - place % ACTIVE_PEOPLE, 0),
                PRICES[lot],
                number);
    }

    /** The numbers of all events, with their times: one comes every millisecond. */
    static DataStream<Long> numbers(StreamExecutionEnvironment env, Setting setting) {
        return Benchmark.numbers(env, setting)
                .assignTimestampsAndWatermarks(
                        WatermarkStrategy.<Long>forMonotonousTimestamps()
                                .withTimestampAssigner((number, before) -> number));
    }

    static DataStream<Tuple4<Long, Long, Long, Long>> bids(StreamExecutionEnvironment env, Setting setting) {
        return numbers(env, setting)
                .filter(Events::isBid)
                .map(Events::bid)
                .returns(Types.TUPLE(Types.LONG, Types.LONG, Types.LONG, Types.LONG));
    }

    /** Numbers of 64 bits, as `_drawn` of the Python version draws them. */
    private static final class SplitMix {

        private long state;

        SplitMix(long seed) {
            state = seed;
        }

        long next() {
            state += 0x9E3779B97F4A7C15L;
            long mixed = (state ^ state >>> 30) * 0xBF58476D1CE4E5B9L;
            mixed = (mixed ^ mixed >>> 27) * 0x94D049BB133111EBL;
            return mixed ^ mixed >>> 31;
        }
    }
}
