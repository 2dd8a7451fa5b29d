// A consumer of franz-go: consumes and commits until SIGTERM, then leaves and closes.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

func given(name string) string { return os.Getenv("KIPCHECK_" + name) }

func panicIf(failed bool, err error) {
	if failed {
		panic(err)
	}
}

func main() {
	balancers := map[string]kgo.GroupBalancer{"range": kgo.RangeBalancer(), "roundrobin": kgo.RoundRobinBalancer(),
		"sticky": kgo.StickyBalancer(), "cooperative-sticky": kgo.CooperativeStickyBalancer()}
	options := []kgo.Opt{kgo.SeedBrokers(given("BOOTSTRAP")), kgo.ConsumerGroup(given("GROUP")),
		kgo.ConsumeTopics(strings.Split(given("TOPICS"), ",")...), kgo.AutoCommitInterval(100 * time.Millisecond),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.ClientID(cmp.Or(given("CLIENT_ID"), "kgo"))}
	for name, option := range map[string]func(time.Duration) kgo.GroupOpt{"SESSION_MS": kgo.SessionTimeout,
		"HEARTBEAT_MS": kgo.HeartbeatInterval, "REBALANCE_MS": kgo.RebalanceTimeout} {
		if number, err := strconv.Atoi(given(name)); err == nil {
			options = append(options, option(time.Duration(number)*time.Millisecond))
		}
	}
	if given("INSTANCE") != "" {
		options = append(options, kgo.InstanceID(given("INSTANCE")))
	}
	if protocol := serverSide(); protocol != nil {
		options = append(options, protocol...)
	} else if given("ASSIGNORS") != "" {
		var chosen []kgo.GroupBalancer
		for _, each := range strings.Split(given("ASSIGNORS"), ",") {
			chosen = append(chosen, balancers[each])
		}
		options = append(options, kgo.Balancers(chosen...))
	}
	client, err := kgo.NewClient(options...)
	panicIf(err != nil, err)
	ended, _ := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	for ended.Err() == nil {
		found := client.PollFetches(ended)
		found.EachError(func(topic string, _ int32, err error) { panicIf(topic != "" && errors.As(err, new(*kerr.Error)), err) })
		found.EachRecord(func(each *kgo.Record) { fmt.Println(each.Topic, each.Partition, each.Offset) })
	}
	client.Close()
}
