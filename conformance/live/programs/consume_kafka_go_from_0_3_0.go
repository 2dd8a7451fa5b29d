package main

import "github.com/segmentio/kafka-go"

// A reader of these releases reads one topic.
func subscribe(config *kafka.ReaderConfig, topics []string) {
	config.Topic = topics[0]
	if given("OFFSET_RESET") == "latest" {
		config.StartOffset = kafka.LastOffset
	}
}
