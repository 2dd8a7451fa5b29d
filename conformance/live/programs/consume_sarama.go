// A consumer of sarama: consumes and commits until SIGTERM, then leaves and closes.
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
	if number, err := strconv.Atoi(given(name)); err == nil {
		*to = time.Duration(number) * time.Millisecond
	}
}

func main() {
	config := sarama.NewConfig()
	config.Version = sarama.V2_8_0_0
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Interval = 100 * time.Millisecond
	set("SESSION_MS", &config.Consumer.Group.Session.Timeout)
	set("HEARTBEAT_MS", &config.Consumer.Group.Heartbeat.Interval)
	set("REBALANCE_MS", &config.Consumer.Group.Rebalance.Timeout)
	config.Consumer.Group.InstanceId = given("INSTANCE")
	if given("CLIENT_ID") != "" {
		config.ClientID = given("CLIENT_ID")
	}
	group, err := sarama.NewConsumerGroup([]string{given("BOOTSTRAP")}, given("GROUP"), config)
	if err != nil {
		panic(err)
	}
	ended, _ := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	for ended.Err() == nil {
		group.Consume(ended, strings.Split(given("TOPICS"), ","), handler{})
	}
	group.Close()
}
