package kipcheck;

import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;

/** Messages in a stream: lines, or frames with a length. */
final class MessageStream {
    private static final int MOST = 16 << 20;

    private final DataInputStream in;
    private final DataOutputStream out;
    private boolean framed;

    MessageStream(InputStream in, OutputStream out) {
        this.in = new DataInputStream(new BufferedInputStream(in, 1 << 16));
        this.out = new DataOutputStream(new BufferedOutputStream(out, 1 << 16));
    }

    /** Sets the framing of everything after this, both ways. */
    void framed(boolean framed) {
        this.framed = framed;
    }

    /** Null at the end. */
    String receive() throws IOException {
        return framed ? frame() : line();
    }

    void send(String text) throws IOException {
        byte[] bytes = text.getBytes(StandardCharsets.US_ASCII);
        if (framed) {
            out.writeInt(bytes.length);
        }
        out.write(bytes);
        if (!framed) {
            out.write('\n');
        }
        out.flush();
    }

    private String line() throws IOException {
        ByteArrayOutputStream line = new ByteArrayOutputStream(1 << 12);
        for (int each = in.read(); each != '\n'; each = in.read()) {
            if (each < 0) {
                return null;
            }
            line.write(each);
        }
        return line.toString(StandardCharsets.UTF_8);
    }

    private String frame() throws IOException {
        int length;
        try {
            length = in.readInt();
        } catch (EOFException end) {
            return null;
        }
        if (length < 0 || length > MOST) {
            throw new IOException("a frame of " + (length & 0xffffffffL) + " bytes");
        }
        byte[] bytes = new byte[length];
        in.readFully(bytes);
        return new String(bytes, StandardCharsets.UTF_8);
    }
}
