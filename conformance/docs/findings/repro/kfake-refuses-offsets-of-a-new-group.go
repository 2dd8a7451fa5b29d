package main

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
)

func main() {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "t"))
	if err != nil {
		panic(err)
	}
	// Up to version 7, OffsetFetch is about one group.
	client, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...), kgo.MaxVersions(kversion.V2_8_0()))
	if err != nil {
		panic(err)
	}
	topic := kmsg.NewOffsetFetchRequestTopic()
	topic.Topic, topic.Partitions = "t", []int32{0}
	fetch := kmsg.NewPtrOffsetFetchRequest()
	fetch.Group = "new"
	fetch.Topics = append(fetch.Topics, topic)
	answer, err := fetch.RequestWith(context.Background(), client)
	if err != nil {
		panic(err)
	}
	fmt.Println("OffsetFetch of a new group: error", answer.ErrorCode)
}
