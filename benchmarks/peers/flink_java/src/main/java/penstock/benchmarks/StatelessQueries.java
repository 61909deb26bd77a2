package penstock.benchmarks;

import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.api.java.tuple.Tuple4;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/** Nexmark's queries 0 to 2. */
final class StatelessQueries {

    private static final long KEEPS_ONE_OF = 500;
    private static final long EURO_CENTS_PER_DOLLAR = 89;
    private static final long ONE_AUCTION_OF = 123;

    private StatelessQueries() {}

    /** Every bid as it is; one in five hundred is collected. */
    static DataStream<?> passThrough(StreamExecutionEnvironment env, Setting setting) {
        return Events.bids(env, setting).filter(StatelessQueries::isKept);
    }

    /** Every bid with its price in euros. */
    static DataStream<?> currencyConversion(StreamExecutionEnvironment env, Setting setting) {
        return Events.bids(env, setting)
                .map(bid -> Tuple4.of(bid.f0, bid.f1, bid.f2 * EURO_CENTS_PER_DOLLAR / 100, bid.f3))
                .returns(Types.TUPLE(Types.LONG, Types.LONG, Types.LONG, Types.LONG))
                .filter(StatelessQueries::isKept);
    }

    /** The bids on some auctions, with auction and price. */
    static DataStream<?> selection(StreamExecutionEnvironment env, Setting setting) {
        return Events.bids(env, setting)
                .filter(bid -> bid.f0 % ONE_AUCTION_OF == 0)
                .map(bid -> Tuple2.of(bid.f0, bid.f2))
                .returns(Types.TUPLE(Types.LONG, Types.LONG));
    }

    private static boolean isKept(Tuple4<Long, Long, Long, Long> bid) {
        return bid.f3 % KEEPS_ONE_OF == KEEPS_ONE_OF - 1;
    }
}
