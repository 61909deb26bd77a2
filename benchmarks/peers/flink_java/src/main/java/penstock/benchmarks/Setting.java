package penstock.benchmarks;

/** One run: how much of what. The arguments are those of the Python programs. */
record Setting(long records, int parallelism, long keys, boolean hasSkew) {

    static Setting parse(String[] arguments, int from) {
        Setting setting = new Setting(2_000_000, 1, 1_000, true);
        int at = from;
        while (at < arguments.length) {
            String name = arguments[at++];
            if (name.startsWith("--config=")) {
                continue; // Meant for Penstock.
            }
            setting = name.equals("--even") ? setting.even() : setting.with(name, arguments[at++]);
        }
        return setting;
    }

    private Setting with(String name, String value) {
        return switch (name) {
            case "--words" -> withRecords(Long.parseLong(value));
            case "--parallelism" -> new Setting(records, Integer.parseInt(value), keys, hasSkew);
            case "--keys" -> new Setting(records, parallelism, Long.parseLong(value), hasSkew);
            default -> throw new IllegalArgumentException("there is no argument " + name);
        };
    }

    private Setting even() {
        return new Setting(records, parallelism, keys, false);
    }

    Setting withRecords(long number) {
        return new Setting(number, parallelism, keys, hasSkew);
    }
}
