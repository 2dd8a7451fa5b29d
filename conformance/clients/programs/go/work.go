package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// evidence is the number of bytes kept of the end of the output.
const evidence = 8 << 10

// lastWords start the line in which a Go program reports why it ends; stacks follow.
var lastWords = regexp.MustCompile(`(?m)^(panic|fatal error|runtime: out of memory).*$`)

// work runs operations, one per line, until the end of input, and writes each result as a line.
func work(messages map[string]*message, in *bufio.Reader, out *bufio.Writer) {
	for {
		text, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		order, err := parsed(text)
		if err != nil {
			panic(err)
		}
		op, _ := order["op"].(object)
		limit, _ := number(order["limit"])
		done := make(chan object, 1)
		began := spent()
		go func() { done <- perform(messages, op) }()
		result := awaited(done, began, time.Duration(limit))
		result["n"] = op["n"]
		say(out, false, printed(result))
		if result["cause"] == "timeout" {
			return // the exit ends the code that spins
		}
	}
}

func awaited(done <-chan object, began, limit time.Duration) object {
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for {
		select {
		case result := <-done:
			return result
		case <-look.C:
			if spent()-began > limit {
				stacks := make([]byte, evidence)
				stacks = stacks[:runtime.Stack(stacks, true)]
				return died("timeout", "more processor time than a case may take", string(stacks))
			}
		}
	}
}

// spent is the processor time of this process.
func spent() time.Duration {
	var used syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &used) != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// A supervised process starts with the first operation, and again after its death.
type supervised struct {
	command *exec.Cmd
	ask     *bufio.Writer
	told    *bufio.Reader
	noise   *ending
}

// result returns the result of an operation; a death is a result too.
func (s *supervised) result(op object, limit time.Duration) any {
	if s.command == nil {
		if err := s.begin(); err != nil {
			return died("crashed", err.Error(), "")
		}
	}
	say(s.ask, false, printed(object{"op": op, "limit": limit.Nanoseconds()}))
	line, err := s.told.ReadBytes('\n')
	if err != nil {
		s.command.Wait()
		gone := died("crashed", s.command.ProcessState.String(), s.noise.String())
		if last := lastWords.FindString(s.noise.String()); last != "" {
			gone["message"] = s.command.ProcessState.String() + ": " + last
			if strings.Contains(last, "out of memory") {
				gone["cause"] = "memory"
			}
		}
		gone["n"] = op["n"]
		s.command = nil
		return gone
	}
	if bytes.Contains(line, []byte(`"cause":"timeout"`)) {
		var found struct{ Status, Cause string }
		if json.Unmarshal(line, &found) == nil && found.Status == "died" {
			s.command.Wait()
			s.command = nil
		}
	}
	return json.RawMessage(line)
}

func (s *supervised) begin() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	command := exec.Command(self, os.Args[1], worker)
	in, err := command.StdinPipe()
	if err != nil {
		return err
	}
	out, err := command.StdoutPipe()
	if err != nil {
		return err
	}
	s.noise = &ending{}
	command.Stderr = s.noise
	if err := command.Start(); err != nil {
		return fmt.Errorf("cannot start the process for operations: %w", err)
	}
	s.command, s.ask, s.told = command, bufio.NewWriterSize(in, 1<<20), bufio.NewReaderSize(out, 1<<20)
	return nil
}

// ending keeps the end of what is written.
type ending struct {
	mutex sync.Mutex
	kept  []byte
}

func (e *ending) Write(data []byte) (int, error) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	e.kept = append(e.kept, data...)
	e.kept = e.kept[max(0, len(e.kept)-evidence):]
	return len(data), nil
}

func (e *ending) String() string {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	return string(e.kept)
}
