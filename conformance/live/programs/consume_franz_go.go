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
	"sync"
	"syscall"
	"time"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

type place struct {
	topic     string
	partition int32
}

// The last record of each partition that a program has read which commits late, and the offsets that it committed.
type late struct {
	sync.Mutex
	working    sync.Mutex
	held       map[place]*kgo.Record
	done       map[place]int64
	owned      map[place]bool
	rebalanced bool
}

// To kipcheck, as all its programs do.
func report(callback string, partitions map[string][]int32) {
	line := "kipcheck: " + callback
	for topic, numbers := range partitions {
		for _, number := range numbers {
			line += fmt.Sprintf(" %s-%d", topic, number)
		}
	}
	fmt.Fprintln(os.Stderr, line)
}

func (l *late) owns(callback string) func(context.Context, *kgo.Client, map[string][]int32) {
	is := callback == "assigned"
	return func(_ context.Context, _ *kgo.Client, changed map[string][]int32) {
		report(callback, changed)
		l.Lock()
		defer l.Unlock()
		for topic, numbers := range changed {
			for _, number := range numbers {
				l.owned[place{topic, number}] = is
			}
		}
		l.rebalanced = l.rebalanced || is
	}
}

// Waits for the work on what was read, finishes its own, and commits what was read of these partitions.
func (l *late) revoked(ctx context.Context, client *kgo.Client, partitions map[string][]int32) {
	l.working.Lock()
	defer l.working.Unlock()
	var read []*kgo.Record
	for topic, numbers := range partitions {
		for _, number := range numbers {
			if each := l.held[place{topic, number}]; each != nil {
				read = append(read, each)
			}
		}
	}
	report("revoked", partitions)
	l.forget(partitions)
	if len(read) > 0 && ctx.Err() == nil {
		work(ctx)
		client.CommitRecords(ctx, read...)
	}
}

func (l *late) lost(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
	report("lost", partitions)
	l.forget(partitions)
}

func (l *late) forget(partitions map[string][]int32) {
	l.Lock()
	defer l.Unlock()
	for topic, numbers := range partitions {
		for _, number := range numbers {
			delete(l.held, place{topic, number})
		}
	}
}

// After a rebalance: what was read before, of the partitions that the client still has.
func (l *late) commits(read []*kgo.Record) (found []*kgo.Record) {
	l.Lock()
	defer l.Unlock()
	if l.rebalanced && given("COMMIT") == "late" {
		for at, each := range l.held {
			if l.owned[at] && each.Offset >= l.done[at] {
				found, l.done[at] = append(found, each), each.Offset+1
			}
		}
		clear(l.held)
		l.rebalanced = false
	}
	for _, each := range read {
		l.held[place{each.Topic, each.Partition}] = each
	}
	return found
}

func commit(client *kgo.Client, ended context.Context, l *late, read []*kgo.Record) (err error) {
	switch how := given("COMMIT"); {
	case how == "sync" && len(read) > 0:
		err = client.CommitUncommittedOffsets(ended)
	case how == "async" && len(read) > 0:
		client.CommitOffsets(context.Background(), client.UncommittedOffsets(), nil)
	case how == "late" || how == "revoked":
		err = client.CommitRecords(ended, l.commits(read)...)
	}
	return err
}

func work(ended context.Context) {
	pause, _ := strconv.Atoi(given("PAUSE_MS"))
	select {
	case <-time.After(time.Duration(pause) * time.Millisecond):
	case <-ended.Done():
	}
}

func given(name string) string { return os.Getenv("KIPCHECK_" + name) }

func panicIf(failed bool, err error) {
	if failed {
		panic(err)
	}
}

func main() {
	balancers := map[string]kgo.GroupBalancer{"range": kgo.RangeBalancer(), "roundrobin": kgo.RoundRobinBalancer(),
		"sticky": kgo.StickyBalancer(), "cooperative-sticky": kgo.CooperativeStickyBalancer()}
	begins := map[string]kgo.Offset{"latest": kgo.NewOffset().AtEnd(), "earliest": kgo.NewOffset().AtStart()}
	interval, _ := time.ParseDuration(cmp.Or(given("COMMIT_MS"), "100") + "ms")
	options := []kgo.Opt{kgo.SeedBrokers(given("BOOTSTRAP")), kgo.ConsumerGroup(given("GROUP")),
		kgo.ConsumeResetOffset(begins[cmp.Or(given("OFFSET_RESET"), "earliest")]), kgo.ClientID(cmp.Or(given("CLIENT_ID"), "kgo"))}
	if given("PATTERN") != "" {
		options = append(options, kgo.ConsumeRegex(), kgo.ConsumeTopics(given("PATTERN")))
	} else {
		options = append(options, kgo.ConsumeTopics(strings.Split(given("TOPICS"), ",")...))
	}
	l := &late{held: map[place]*kgo.Record{}, done: map[place]int64{}, owned: map[place]bool{}}
	switch given("COMMIT") {
	case "", "auto":
		options = append(options, kgo.AutoCommitInterval(interval))
	case "late":
		options = append(options, kgo.DisableAutoCommit(), kgo.OnPartitionsAssigned(l.owns("assigned")),
			kgo.OnPartitionsRevoked(l.owns("revoked")), kgo.OnPartitionsLost(l.owns("lost")))
	case "revoked":
		options = append(options, kgo.DisableAutoCommit(), kgo.OnPartitionsAssigned(l.owns("assigned")),
			kgo.OnPartitionsRevoked(l.revoked), kgo.OnPartitionsLost(l.lost))
	default:
		options = append(options, kgo.DisableAutoCommit())
	}
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
		var read []*kgo.Record
		found.EachRecord(func(each *kgo.Record) {
			read = append(read, each)
			fmt.Println(each.Topic, each.Partition, each.Offset)
		})
		l.working.Lock()
		work(ended)
		err := commit(client, ended, l, read)
		l.working.Unlock()
		if err != nil {
			panicIf(errors.Is(err, kerr.GroupAuthorizationFailed) || errors.Is(err, kerr.TopicAuthorizationFailed), err)
			fmt.Fprintln(os.Stderr, err)
		}
	}
	client.Close()
}
