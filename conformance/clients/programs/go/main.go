// Testee protocol 1 over standard input and output, for franz-go: its messages and its group balancers.
//
// It observes and never judges. Its first argument is the folder with Kafka's message definitions, from which the names
// of fields are taken. Operations run in a second process of the same program, since an infinite loop cannot be stopped
// otherwise and a fatal error cannot be recovered; when that process dies, the operation is known and a new process runs
// the next one.
package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
)

const (
	library = "github.com/twmb/franz-go"
	// worker is the second argument of the process that runs operations.
	worker = "worker"
	frames = "frames"
	most   = 16 << 20
)

type object = map[string]any

// limits are what it cannot represent; an unsupported result names one of them.
var limits = object{
	"null":    "a Go type that is neither a pointer nor a list cannot be null",
	"utf-8":   "text that is not UTF-8 is kept as it is, and JSON cannot represent it",
	"place":   "the structs of this release cannot represent some fields and values",
	"version": "the version of sticky user data cannot be chosen: it is 0 for generation -1, else 1",
}

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: testee FOLDER-OF-DEFINITIONS")
		os.Exit(2)
	}
	messages, err := lined(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	in, out := bufio.NewReaderSize(os.Stdin, 1<<20), bufio.NewWriterSize(os.Stdout, 1<<20)
	// What the library prints must not mix with the protocol.
	os.Stdout = os.Stderr
	if len(os.Args) > 2 && os.Args[2] == worker {
		work(messages, in, out)
		return
	}
	atWork := &supervised{}
	framed := false
	for {
		text, err := heard(in, framed)
		if err != nil {
			return
		}
		order, err := parsed(text)
		if err != nil {
			fmt.Fprintln(os.Stderr, "not JSON:", err)
			os.Exit(2)
		}
		answer := reply(messages, atWork, order)
		say(out, framed, printed(answer))
		if order["type"] == "bye" {
			return
		}
		if answer["ok"] == true && order["framing"] != nil {
			framed = order["framing"] == frames
		}
	}
}

func reply(messages map[string]*message, atWork *supervised, order object) object {
	switch order["type"] {
	case "hello":
		capabilities := object{}
		for name, each := range messages {
			capabilities[name] = []int16{each.low, each.high}
		}
		return object{
			"type": "hello", "protocol": 1, "name": "franz-go", "version": version(), "language": runtime.Version(),
			"issues": "https://github.com/twmb/franz-go/issues", "roles": []string{"codec", "leader"},
			"capabilities": capabilities, "assignors": assignors(), "limits": limits,
			"framing": []string{"lines", frames},
		}
	case "configure":
		edition, _ := order["edition"].(string)
		if name, _, _ := strings.Cut(edition, "@"); name != "apache" {
			return object{"type": "configure", "unsupported": "franz-go does not implement edition " + edition}
		}
		if role := order["role"]; role != "codec" && role != "leader" {
			return object{"type": "configure", "unsupported": fmt.Sprintf("franz-go does not play the role %v", role)}
		}
		return object{"type": "configure", "ok": true}
	case "batch":
		limit := 2 * time.Second
		if given, err := number(order["cpu_ms"]); err == nil && given > 0 {
			limit = time.Duration(given) * time.Millisecond
		}
		results := []any{}
		for _, each := range list(order["cases"]) {
			op, _ := each.(object)
			results = append(results, atWork.result(op, limit))
		}
		return object{"type": "results", "id": order["id"], "results": results}
	case "bye":
		return object{"type": "bye"}
	}
	return object{"type": "unsupported", "message": fmt.Sprintf("unknown message type %v", order["type"])}
}

func perform(messages map[string]*message, op object) object {
	name, _ := op["op"].(string)
	switch name {
	case "assign":
		return assign(op)
	case "user-data":
		return userData(op)
	}
	called, _ := op["message"].(string)
	found := messages[called]
	if found == nil {
		return object{"status": "unsupported", "message": "it has no message " + called}
	}
	return found.perform(name, op)
}

func accepted(key string, value any) object {
	return object{"status": "accepted", key: value}
}

func rejected(err error) object {
	kind := strings.TrimPrefix(fmt.Sprintf("%T", err), "*")
	return object{"status": "rejected", "class": kind, "message": err.Error()}
}

func unsupported(limit inexpressible) object {
	return object{"status": "unsupported", "capability": limit.name, "message": limit.why}
}

func died(cause, why, evidence string) object {
	return object{"status": "died", "cause": cause, "message": why, "evidence": evidence}
}

// version is the release of the library that this program was built with.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, each := range info.Deps {
			if each.Path == library {
				return strings.TrimPrefix(each.Version, "v")
			}
		}
	}
	return "unknown"
}

// heard returns the next message: a line, or a frame with its length.
func heard(in *bufio.Reader, framed bool) ([]byte, error) {
	if !framed {
		return in.ReadBytes('\n')
	}
	var length [4]byte
	if _, err := io.ReadFull(in, length[:]); err != nil {
		return nil, err
	}
	size := binary.BigEndian.Uint32(length[:])
	if size > most {
		return nil, fmt.Errorf("a frame of %d bytes", size)
	}
	text := make([]byte, size)
	_, err := io.ReadFull(in, text)
	return text, err
}

func say(out *bufio.Writer, framed bool, text []byte) {
	if framed {
		out.Write(binary.BigEndian.AppendUint32(nil, uint32(len(text))))
		out.Write(text)
	} else {
		out.Write(text)
		out.WriteByte('\n')
	}
	out.Flush()
}

func parsed(text []byte) (object, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber() // a float64 cannot represent every int64
	var order object
	err := decoder.Decode(&order)
	return order, err
}

func printed(answer any) []byte {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(answer); err != nil {
		fmt.Fprintln(os.Stderr, "not JSON:", err)
		os.Exit(2)
	}
	return bytes.TrimSpace(text.Bytes())
}
