// A consumer of kafka-go: consumes and commits until SIGTERM, then leaves and closes.
package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"github.com/segmentio/kafka-go"
)

func given(name string) string { return os.Getenv("KIPCHECK_" + name) }

func set(name string, to *time.Duration) {
	if found, err := strconv.Atoi(given(name)); err == nil {
		*to = time.Duration(found) * time.Millisecond
	}
}

type place struct {
	topic     string
	partition int
}

// Pauses after the last message that is there. Returns whether there was a rebalance since the last call: a reader has
// no callbacks, and does not say which partitions it has.
func work(ended context.Context, reader *kafka.Reader, pause time.Duration) bool {
	stats := reader.Stats()
	if stats.QueueLength == 0 {
		select {
		case <-time.After(pause):
		case <-ended.Done():
		}
	}
	return stats.Rebalances > 0
}

func main() {
	balancers := map[string]kafka.GroupBalancer{"range": kafka.RangeGroupBalancer{}, "roundrobin": kafka.RoundRobinGroupBalancer{}}
	dialer := *kafka.DefaultDialer
	config := kafka.ReaderConfig{Brokers: []string{given("BOOTSTRAP")}, GroupID: given("GROUP"), Dialer: &dialer,
		MaxBytes: 1 << 20, MaxWait: 500 * time.Millisecond}
	if given("CLIENT_ID") != "" {
		dialer.ClientID = given("CLIENT_ID")
	}
	set("SESSION_MS", &config.SessionTimeout)
	set("HEARTBEAT_MS", &config.HeartbeatInterval)
	set("REBALANCE_MS", &config.RebalanceTimeout)
	for _, each := range strings.FieldsFunc(given("ASSIGNORS"), func(char rune) bool { return char == ',' }) {
		config.GroupBalancers = append(config.GroupBalancers, balancers[each])
	}
	if given("COMMIT") != "sync" && given("COMMIT") != "late" {
		config.CommitInterval = 100 * time.Millisecond
		set("COMMIT_MS", &config.CommitInterval)
	}
	subscribe(&config, strings.Split(given("TOPICS"), ","))
	reader := kafka.NewReader(config)
	ended, _ := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	var pause time.Duration
	set("PAUSE_MS", &pause)
	if given("COMMIT") == "revoked" {
		panic("a reader of kafka-go has no callback for revoked partitions")
	}
	read := reader.FetchMessage
	if given("COMMIT") == "" || given("COMMIT") == "auto" {
		read = reader.ReadMessage
	}
	held := map[place]kafka.Message{}
	for {
		found, err := read(ended)
		if err != nil {
			if ended.Err() == nil {
				fmt.Fprintln(os.Stderr, err)
			}
			break
		}
		fmt.Println(found.Topic, found.Partition, found.Offset)
		rebalanced := work(ended, reader, pause)
		switch given("COMMIT") {
		case "sync", "async":
			err = reader.CommitMessages(ended, found)
		case "late":
			if rebalanced && len(held) > 0 {
				err = reader.CommitMessages(ended, slices.Collect(maps.Values(held))...)
				clear(held)
			}
			held[place{found.Topic, found.Partition}] = found
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	reader.Close()
}
