// A consumer of sarama: consumes and commits until SIGTERM, then leaves and closes.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"github.com/IBM/sarama"
)

type place struct {
	topic     string
	partition int32
}

// The last message of each partition that a program has read which commits late, with the session of all of them.
type late struct {
	sync.Mutex
	ended   context.Context
	session sarama.ConsumerGroupSession
	held    map[place]*sarama.ConsumerMessage
}

// Commits, in a new session, what was read in the one before: through that one, which is over, and through the new one
// if it has the partition.
func (l *late) Setup(session sarama.ConsumerGroupSession) error {
	report("assigned", session)
	l.Lock()
	defer l.Unlock()
	for at, each := range l.held {
		l.session.MarkMessage(each, "")
		if slices.Contains(session.Claims()[at.topic], at.partition) {
			session.MarkOffset(at.topic, at.partition, each.Offset+1, "")
		}
	}
	if l.session != nil {
		commit(l.session)
		commit(session)
	}
	l.session, l.held = nil, map[place]*sarama.ConsumerMessage{}
	return nil
}

// Commits what was read in this session, if the program does so here.
func (l *late) Cleanup(session sarama.ConsumerGroupSession) error {
	report("given-up", session)
	l.Lock()
	defer l.Unlock()
	if given("COMMIT") == "revoked" {
		for _, each := range l.held {
			session.MarkMessage(each, "")
		}
		commit(session)
		l.session, l.held = nil, nil
	}
	return nil
}

func (l *late) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	pause, _ := strconv.Atoi(given("PAUSE_MS"))
	for each := range claim.Messages() {
		fmt.Println(each.Topic, each.Partition, each.Offset)
		last := len(claim.Messages()) == 0
		if last {
			select {
			case <-time.After(time.Duration(pause) * time.Millisecond):
			case <-l.ended.Done():
			}
		}
		if given("COMMIT") == "late" || given("COMMIT") == "revoked" {
			l.Lock()
			l.session, l.held[place{each.Topic, each.Partition}] = session, each
			l.Unlock()
			continue
		}
		session.MarkMessage(each, "")
		if given("COMMIT") == "sync" && last {
			commit(session)
		} else if given("COMMIT") == "async" && last {
			go commit(session)
		}
	}
	return nil
}

// Whether a session lasts over rebalances, as with a cooperative strategy from 1.61 on.
var sessionLasts = false

// To kipcheck, as all its programs do; but for a session that lasts: it is set up once.
func report(callback string, session sarama.ConsumerGroupSession) {
	if sessionLasts {
		return
	}
	line := "kipcheck: " + callback
	for topic, numbers := range session.Claims() {
		for _, number := range numbers {
			line += fmt.Sprintf(" %s-%d", topic, number)
		}
	}
	fmt.Fprintln(os.Stderr, line)
}

// From 1.27 on.
func commit(session sarama.ConsumerGroupSession) {
	if session, can := session.(interface{ Commit() }); can {
		session.Commit()
	}
}

func given(name string) string { return os.Getenv("KIPCHECK_" + name) }

func set(name string, to *time.Duration) {
	if found, err := time.ParseDuration(given(name) + "ms"); err == nil {
		*to = found
	}
}

// Errors that do not pass, as the protocol guide numbers them; after others Consume is called again.
var fatal = map[sarama.KError]bool{
	23: true, 24: true, 26: true, 29: true, 30: true, 35: true, 42: true, 81: true, 82: true,
}

func main() {
	config := sarama.NewConfig()
	member := &config.Consumer.Group
	config.Version, _ = sarama.ParseKafkaVersion("2.8.0")
	if !sarama.MaxVersion.IsAtLeast(config.Version) {
		config.Version = sarama.MaxVersion
	}
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	if given("OFFSET_RESET") == "latest" {
		config.Consumer.Offsets.Initial = sarama.OffsetNewest
	}
	set("SESSION_MS", &member.Session.Timeout)
	set("HEARTBEAT_MS", &member.Heartbeat.Interval)
	set("REBALANCE_MS", &member.Rebalance.Timeout)
	config.ClientID = cmp.Or(given("CLIENT_ID"), config.ClientID)
	configure(config)
	group, err := sarama.NewConsumerGroup([]string{given("BOOTSTRAP")}, given("GROUP"), config)
	if err != nil {
		panic(err)
	}
	ended, _ := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	program := &late{ended: ended}
	for ended.Err() == nil {
		var refused sarama.KError
		err := group.Consume(ended, strings.Split(given("TOPICS"), ","), program)
		if errors.As(err, &refused) && fatal[refused] {  // that of a topic may be in another one
			panic(refused)
		}
	}
	group.Close()
}
