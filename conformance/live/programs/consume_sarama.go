// A consumer of sarama: consumes and commits until SIGTERM, then leaves and closes.
package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
	"github.com/IBM/sarama"
)

type handler struct{}
func (handler) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (handler) Cleanup(sarama.ConsumerGroupSession) error { return nil }
func (handler) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for each := range claim.Messages() {
		fmt.Println(each.Topic, each.Partition, each.Offset)
		session.MarkMessage(each, "")
	}
	return nil
}

func given(name string) string { return os.Getenv("KIPCHECK_" + name) }

func set(name string, to *time.Duration) {
	if found, err := time.ParseDuration(given(name) + "ms"); err == nil {
		*to = found
	}
}

func main() {
	config := sarama.NewConfig()
	member := &config.Consumer.Group
	config.Version, _ = sarama.ParseKafkaVersion("2.8.0")
	if !sarama.MaxVersion.IsAtLeast(config.Version) {
		config.Version = sarama.MaxVersion
	}
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
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
	for ended.Err() == nil {
		if refused, is := group.Consume(ended, strings.Split(given("TOPICS"), ","), handler{}).(sarama.KError); is {
			panic(refused)
		}
	}
	group.Close()
}
