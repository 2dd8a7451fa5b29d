package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func main() {
	client, err := kgo.NewClient(kgo.SeedBrokers(os.Args[1]), kgo.ConsumerGroup("g"), kgo.ConsumeTopics("t"),
		kgo.SessionTimeout(3*time.Second), kgo.HeartbeatInterval(300*time.Millisecond))
	if err != nil {
		panic(err)
	}
	ended, _ := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	for ended.Err() == nil {
		client.PollFetches(ended)
	}
	client.Close()
}
