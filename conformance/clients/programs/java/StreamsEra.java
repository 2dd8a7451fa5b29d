package kipcheck;

/** Creates the assignors of some releases, with their configuration and the objects that they call. */
interface StreamsEra {
    /**
     * A new member; it has the state in the order, if there is any.
     *
     * @throws Throwable whatever {@code configure} throws
     * @throws Release.Unsupported where this release has no such topology
     */
    StreamsMember member(StreamsOrder order) throws Throwable;

    /** The newest metadata version of the release. */
    int latest() throws Throwable;
}
