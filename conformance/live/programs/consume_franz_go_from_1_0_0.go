package main

import "github.com/twmb/franz-go/pkg/kgo"

// These releases do not have the protocol of KIP-848.
func serverSide() []kgo.Opt { return nil }
