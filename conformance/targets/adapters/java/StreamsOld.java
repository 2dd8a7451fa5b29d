package kipcheck;

/** Assignors from 0.10.0 to 2.3. */
final class StreamsOld implements StreamsEra {
    private final Release release;

    StreamsOld(Release release) {
        this.release = release;
    }

    @Override
    public StreamsMember member(StreamsOrder order) throws Throwable {
        throw new Release.Unsupported("the assignor of kafka-streams " + release.name + " is not driven yet");
    }

    @Override
    public int latest() throws Throwable {
        throw new Release.Unsupported("the assignor of kafka-streams " + release.name + " is not driven yet");
    }
}
