package main

import (
	"fmt"
	"net"
	"strconv"
	"strings"
)

func itoa(n int) string { return strconv.Itoa(n) }

// listen takes a free port of loopback.
func listen() (net.Listener, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // loopback does not wait
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	return ln, nil
}

// slackID is errand's ID for a mention. It depends only on the message, so that a repetition has the same.
func slackID(ts, channel string) string {
	return strings.ReplaceAll(ts, ".", "") + "-slack-" + strings.ToLower(channel)
}
