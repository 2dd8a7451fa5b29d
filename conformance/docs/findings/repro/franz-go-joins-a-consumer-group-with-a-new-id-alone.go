package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/twmb/franz-go/pkg/kgo"
)

func main() {
	client, err := kgo.NewClient(kgo.SeedBrokers(os.Args[1]), kgo.ConsumerGroup("g"), kgo.ConsumeTopics("t"),
		kgo.ServerSideBalancer(), kgo.Balancers(kgo.StickyBalancer()))
	if err != nil {
		panic(err)
	}
	ended, _ := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	for ended.Err() == nil {
		client.PollFetches(ended)
	}
	client.Close()
}
