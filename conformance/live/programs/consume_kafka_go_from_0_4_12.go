package main

import "github.com/segmentio/kafka-go"

func subscribe(config *kafka.ReaderConfig, topics []string) { config.GroupTopics = topics }
