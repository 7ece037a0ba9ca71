package door

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

// Connections is how many Slack has open to us, as it were, and keeps.
const Connections = 32

// Load is what came of many requests.
type Load struct {
	Wall   time.Duration
	Taken  int64           // answered with 200
	Delays []time.Duration // from when a request was due to its answer, sorted
}

// Rate is how many were answered in a second.
func (l Load) Rate() float64 { return float64(len(l.Delays)) / l.Wall.Seconds() }

// Percentile is the delay that a part of them, such as .99, did not exceed.
func (l Load) Percentile(p float64) time.Duration {
	if len(l.Delays) == 0 {
		return 0
	}
	return l.Delays[min(int(p*float64(len(l.Delays))), len(l.Delays)-1)]
}

// Fire sends requests as fast as they are answered, or, with an interval, each at its time: one that cannot leave in
// time waits, and the wait counts. The requests are made up beforehand, so that this process takes little of the
// machine.
func Fire(ctx context.Context, addr string, requests [][]byte, interval time.Duration) (Load, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	l := Load{Delays: make([]time.Duration, len(requests))}
	var next, taken atomic.Int64
	var all sync.WaitGroup
	begun := time.Now()
	for range Connections {
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
					if !Until(ctx, due) {
						return
					}
				}
				status, err := ask(conn, in, requests[i])
				if err != nil {
					cancel(fmt.Errorf("send event: %w", err))
					return
				}
				l.Delays[i] = time.Since(due)
				if status == http.StatusOK {
					taken.Add(1)
				}
			}
		})
	}
	all.Wait()
	l.Wall, l.Taken = time.Since(begun), taken.Load()
	slices.Sort(l.Delays)
	return l, context.Cause(ctx)
}

// Until waits for a time; false when ctx ended first.
func Until(ctx context.Context, at time.Time) bool {
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
