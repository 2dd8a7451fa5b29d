package main

import (
	"time"
	"github.com/IBM/sarama"
)

// These releases have no static members, and another name for the interval of commits.
func configure(config *sarama.Config) {
	config.Consumer.Offsets.CommitInterval = 100 * time.Millisecond
	set("COMMIT_MS", &config.Consumer.Offsets.CommitInterval)
}
