// A consumer of franz-go: consumes and commits until SIGTERM, then leaves and closes.
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

	"github.com/twmb/franz-go/pkg/kgo"
)

func given(name string) string { return os.Getenv("KIPCHECK_" + name) }

func milliseconds(name string, option func(time.Duration) kgo.GroupOpt, to []kgo.Opt) []kgo.Opt {
	if number, err := strconv.Atoi(given(name)); err == nil {
		return append(to, option(time.Duration(number)*time.Millisecond))
	}
	return to
}

func main() {
	balancers := map[string]kgo.GroupBalancer{"range": kgo.RangeBalancer(), "roundrobin": kgo.RoundRobinBalancer(),
		"sticky": kgo.StickyBalancer(), "cooperative-sticky": kgo.CooperativeStickyBalancer()}
	options := []kgo.Opt{kgo.SeedBrokers(given("BOOTSTRAP")), kgo.ConsumerGroup(given("GROUP")),
		kgo.ConsumeTopics(strings.Split(given("TOPICS"), ",")...), kgo.AutoCommitInterval(100 * time.Millisecond),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())}
	options = milliseconds("SESSION_MS", kgo.SessionTimeout, options)
	options = milliseconds("HEARTBEAT_MS", kgo.HeartbeatInterval, options)
	options = milliseconds("REBALANCE_MS", kgo.RebalanceTimeout, options)
	if given("INSTANCE") != "" {
		options = append(options, kgo.InstanceID(given("INSTANCE")))
	}
	if given("CLIENT_ID") != "" {
		options = append(options, kgo.ClientID(given("CLIENT_ID")))
	}
	if given("PROTOCOL") == "consumer" {
		options = append(options, kgo.ServerSideBalancer(), kgo.Balancers(kgo.StickyBalancer()))
	} else if given("ASSIGNORS") != "" {
		var chosen []kgo.GroupBalancer
		for _, each := range strings.Split(given("ASSIGNORS"), ",") {
			chosen = append(chosen, balancers[each])
		}
		options = append(options, kgo.Balancers(chosen...))
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		panic(err)
	}
	ended, _ := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	for ended.Err() == nil {
		client.PollFetches(ended).EachRecord(func(each *kgo.Record) { fmt.Println(each.Topic, each.Partition, each.Offset) })
	}
	client.Close()
}
