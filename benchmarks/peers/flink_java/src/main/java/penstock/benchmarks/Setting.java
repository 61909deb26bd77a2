package penstock.benchmarks;

import java.util.HashMap;
import java.util.Map;

/** One run: how much of what. The arguments are those of the Python programs. */
record Setting(
        long records, int parallelism, long keys, boolean hasSkew, int repeats, Map<String, String> config) {

    private static final String CONFIG = "--config=";

    static Setting parse(String[] arguments, int from) {
        Setting setting = new Setting(2_000_000, 1, 1_000, true, 1, Map.of());
        int at = from;
        while (at < arguments.length) {
            String name = arguments[at++];
            if (name.startsWith(CONFIG)) {
                setting = setting.withConfig(name.substring(CONFIG.length()));
            } else {
                setting = name.equals("--even") ? setting.even() : setting.with(name, arguments[at++]);
            }
        }
        return setting;
    }

    private Setting with(String name, String value) {
        return switch (name) {
            case "--words" -> withRecords(Long.parseLong(value));
            case "--parallelism" -> new Setting(records, Integer.parseInt(value), keys, hasSkew, repeats, config);
            case "--keys" -> new Setting(records, parallelism, Long.parseLong(value), hasSkew, repeats, config);
            case "--repeat" -> new Setting(records, parallelism, keys, hasSkew, Integer.parseInt(value), config);
            default -> throw new IllegalArgumentException("there is no argument " + name);
        };
    }

    private Setting even() {
        return new Setting(records, parallelism, keys, false, repeats, config);
    }

    private Setting withConfig(String pair) {
        Map<String, String> more = new HashMap<>(config);
        more.put(pair.substring(0, pair.indexOf('=')), pair.substring(pair.indexOf('=') + 1));
        return new Setting(records, parallelism, keys, hasSkew, repeats, more);
    }

    Setting withRecords(long number) {
        return new Setting(number, parallelism, keys, hasSkew, repeats, config);
    }
}
