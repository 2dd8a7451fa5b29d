// The shortest testee in Go, of HeartbeatResponse v0. It needs no module.
//
//	go build testee.go && kipcheck doctor --target "cmd:./testee"
package main

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// ---- call your library here; return its errors

type value struct {
	ErrorCode int16 `json:"errorCode"`
}

func decode(data []byte) (v value, err error) {
	if len(data) != 2 {
		return v, fmt.Errorf("%d bytes", len(data))
	}
	return value{int16(binary.BigEndian.Uint16(data))}, nil
}

func encode(v value) ([]byte, error) {
	return binary.BigEndian.AppendUint16(nil, uint16(v.ErrorCode)), nil
}

// ---- the testee protocol

type object = map[string]any

type step struct {
	N           int
	Op, Message string
	Version     int
	Hex         string
	Value       value
}

func run(s step) (object, error) {
	if s.Message != "HeartbeatResponse" || s.Version != 0 {
		return object{"status": "unsupported"}, nil
	}
	data, err := hex.DecodeString(s.Hex)
	if err != nil {
		return nil, err
	}
	v := s.Value
	if s.Op == "decode" || s.Op == "recode" {
		if v, err = decode(data); err != nil {
			return nil, err
		}
	}
	switch s.Op {
	case "decode":
		return object{"status": "accepted", "value": v}, nil
	case "encode", "recode":
		data, err = encode(v)
		return object{"status": "accepted", "hex": hex.EncodeToString(data)}, err
	}
	return object{"status": "unsupported"}, nil
}

func result(raw json.RawMessage) object {
	var s step
	err := json.Unmarshal(raw, &s)
	found := object{}
	if err == nil {
		found, err = run(s)
	}
	if err != nil {
		found = object{"status": "rejected", "class": fmt.Sprintf("%T", err), "message": err.Error()}
	}
	found["n"] = s.N
	return found
}

type request struct {
	Type, Role, Edition string
	ID                  int
	Cases               []json.RawMessage
}

func answer(r request) object {
	switch r.Type {
	case "hello":
		return object{"type": "hello", "protocol": 1, "name": "skeleton-go", "version": "1", "language": "go",
			"roles": []string{"codec"}, "capabilities": object{"HeartbeatResponse": [2]int{0, 0}}}
	case "configure":
		if r.Role == "codec" && strings.HasPrefix(r.Edition, "apache") {
			return object{"type": "configure", "ok": true}
		}
		return object{"type": "configure", "unsupported": "only the role codec, of apache"}
	case "batch":
		results := []object{}
		for _, raw := range r.Cases {
			results = append(results, result(raw))
		}
		return object{"type": "results", "id": r.ID, "results": results}
	case "bye":
		return object{"type": "bye"}
	}
	return object{"type": "unsupported"}
}

func main() {
	lines, out := bufio.NewReader(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var r request
		if err := json.Unmarshal(line, &r); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		out.Encode(answer(r))
		if r.Type == "bye" {
			return
		}
	}
}
