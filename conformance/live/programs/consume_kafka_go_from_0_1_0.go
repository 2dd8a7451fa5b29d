package main

import "github.com/segmentio/kafka-go"

// A reader of these releases reads one topic, from its beginning on.
func subscribe(config *kafka.ReaderConfig, topics []string) {
	if given("OFFSET_RESET") == "latest" {
		panic("a reader of this release has no StartOffset")
	}
	config.Topic = topics[0]
}
