// A consumer of kafka-go: consumes and commits until SIGTERM, then leaves and closes.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
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

func main() {
	balancers := map[string]kafka.GroupBalancer{"range": kafka.RangeGroupBalancer{}, "roundrobin": kafka.RoundRobinGroupBalancer{}}
	dialer := *kafka.DefaultDialer
	config := kafka.ReaderConfig{Brokers: []string{given("BOOTSTRAP")}, GroupID: given("GROUP"), Dialer: &dialer,
		MaxBytes: 1 << 20, MaxWait: 500 * time.Millisecond, CommitInterval: 100 * time.Millisecond}
	if given("CLIENT_ID") != "" {
		dialer.ClientID = given("CLIENT_ID")
	}
	set("SESSION_MS", &config.SessionTimeout)
	set("HEARTBEAT_MS", &config.HeartbeatInterval)
	set("REBALANCE_MS", &config.RebalanceTimeout)
	for _, each := range strings.FieldsFunc(given("ASSIGNORS"), func(char rune) bool { return char == ',' }) {
		config.GroupBalancers = append(config.GroupBalancers, balancers[each])
	}
	subscribe(&config, strings.Split(given("TOPICS"), ","))
	reader := kafka.NewReader(config)
	ended, _ := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	for {
		found, err := reader.ReadMessage(ended)
		if err != nil {
			if ended.Err() == nil {
				fmt.Fprintln(os.Stderr, err)
			}
			break
		}
		fmt.Println(found.Topic, found.Partition, found.Offset)
	}
	reader.Close()
}
