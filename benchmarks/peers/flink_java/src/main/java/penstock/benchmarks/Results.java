package penstock.benchmarks;

import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.flink.api.java.tuple.Tuple;

/** Results written as Python's repr() would, and their digest, which is the same in any order. */
final class Results {

    private static final int DIGEST_LENGTH = 16;

    private Results() {}

    static String digest(List<?> results) throws NoSuchAlgorithmException {
        String lines = results.stream().map(Results::repr).sorted().collect(Collectors.joining("\n"));
        byte[] hash = MessageDigest.getInstance("SHA-256").digest(lines.getBytes(StandardCharsets.UTF_8));
        return HexFormat.of().formatHex(hash).substring(0, DIGEST_LENGTH);
    }

    static String repr(Object value) {
        if (value instanceof Tuple tuple) {
            String end = tuple.getArity() == 1 ? ",)" : ")";
            return IntStream.range(0, tuple.getArity())
                    .mapToObj(at -> repr(tuple.getField(at)))
                    .collect(Collectors.joining(", ", "(", end));
        }
        if (value instanceof String text) {
            return "'" + text + "'"; // No benchmark has a text that Python would escape.
        }
        if (value instanceof Long || value instanceof Integer) {
            return value.toString();
        }
        throw new IllegalArgumentException("cannot write " + value.getClass() + " as Python does");
    }
}
