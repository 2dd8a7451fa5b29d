package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/IBM/sarama"
)

type handler struct{}

func (handler) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (handler) Cleanup(sarama.ConsumerGroupSession) error { return nil }
func (handler) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for message := range claim.Messages() {
		session.MarkMessage(message, "")
	}
	return nil
}

func main() {
	config := sarama.NewConfig()
	config.Version = sarama.V2_3_0_0
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Group.Session.Timeout = 3 * time.Second
	config.Consumer.Group.Heartbeat.Interval = 300 * time.Millisecond
	group, err := sarama.NewConsumerGroup([]string{os.Args[1]}, "g", config)
	if err != nil {
		panic(err)
	}
	ended, _ := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	for ended.Err() == nil {
		group.Consume(ended, []string{"t"}, handler{})
	}
	group.Close()
}
