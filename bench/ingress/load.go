package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// connections is how many Slack has open to us, as it were, and keeps.
const connections = 32

// load is what came of many requests.
type load struct {
	wall   time.Duration
	taken  int64           // answered with 200
	delays []time.Duration // from when a request was due to its answer, sorted
}

func (l load) rate() float64 { return float64(len(l.delays)) / l.wall.Seconds() }

func (l load) percentile(p float64) time.Duration {
	if len(l.delays) == 0 {
		return 0
	}
	return l.delays[min(int(p*float64(len(l.delays))), len(l.delays)-1)]
}

// fire sends requests as fast as they are answered, or, with an interval, each at its time: one that cannot leave in time waits, and the wait
// counts. The requests are made up beforehand, so that this process takes little of the machine.
func fire(ctx context.Context, addr string, requests [][]byte, interval time.Duration) (load, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	l := load{delays: make([]time.Duration, len(requests))}
	var next, taken atomic.Int64
	var all sync.WaitGroup
	begun := time.Now()
	for range connections {
		all.Go(func() {
			conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
			if err != nil {
				cancel(err)
				return
			}
			defer conn.Close()
			defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
			in := bufio.NewReader(conn)
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(requests) {
					return
				}
				due := time.Now()
				if interval > 0 {
					due = begun.Add(time.Duration(i) * interval)
					if !until(ctx, due) {
						return
					}
				}
				status, err := ask(conn, in, requests[i])
				if err != nil {
					cancel(fmt.Errorf("send event: %w", err))
					return
				}
				l.delays[i] = time.Since(due)
				if status == http.StatusOK {
					taken.Add(1)
				}
			}
		})
	}
	all.Wait()
	l.wall, l.taken = time.Since(begun), taken.Load()
	slices.Sort(l.delays)
	return l, context.Cause(ctx)
}

// until waits for a time; false when ctx ended first.
func until(ctx context.Context, at time.Time) bool {
	wait := time.Until(at)
	if wait <= 0 {
		return true
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// ask makes one request on a connection that stays open.
func ask(conn net.Conn, in *bufio.Reader, request []byte) (status int, err error) {
	if _, err := conn.Write(request); err != nil {
		return 0, err
	}
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, errors.Join(err, resp.Body.Close())
}
