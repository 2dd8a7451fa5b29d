package main

import "github.com/segmentio/kafka-go"

func subscribe(config *kafka.ReaderConfig, topics []string) {
	config.GroupTopics = topics
	if given("OFFSET_RESET") == "latest" {
		config.StartOffset = kafka.LastOffset
	}
}
