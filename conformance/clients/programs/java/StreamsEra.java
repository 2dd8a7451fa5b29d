package kipcheck;

/** How the assignors of some releases are made: what they are configured with, and whom they talk to. */
interface StreamsEra {
    /**
     * A new member; it has what the order says it remembers, if the order says.
     *
     * @throws Throwable whatever {@code configure} throws
     * @throws Release.Unsupported where this release has no such topology
     */
    StreamsMember member(StreamsOrder order) throws Throwable;

    /** The newest metadata version of the release. */
    int latest() throws Throwable;
}
