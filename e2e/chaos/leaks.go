package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/errand-fleet/errand/e2e/chaos/script"
)

// metricsToken opens the metrics of every program.
const metricsToken = "chaos-metrics-token-for-loopback"

// Bounds of the search for leaks.
const (
	warmUp      = 100 // runs before the first count
	atOnce      = 12  // runs
	shortWork   = 5 * time.Millisecond
	settleFor   = 30 * time.Second // for connections and timers to end
	maxGrowth   = 15               // of goroutines and descriptors of one program, and of keys that belong to no task
	keysPerTask = 1.05             // of each kind that tasks have
)

// keysOfTasks are the kinds of keys that stay for a while after a task, one for each: its record, events and log, what
// its thread needs for the next one, and asynq's completed delivery. store/keys.go describes them.
var keysOfTasks = []string{"task", "events", "log", "session", "topic", "thread", "asynq"}

// usage is what the fleet has open at one moment.
type usage struct {
	open map[string]int // by program and thing
	keys map[string]int // of Redis, by kind
}

// findLeaks runs many short tasks without faults and reports what has grown with their number.
func findLeaks(ctx context.Context, set settings, out io.Writer) (ok bool, err error) {
	w, err := newWorld(set)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, w.close("")) }()
	f, err := newFleet(ctx, set, w)
	defer f.close()
	if err != nil {
		return false, err
	}
	begun, t, client := time.Now(), newTraffic(w, f.base), f.redis.client()
	defer client.Close()
	t.shortRuns(ctx, 0, warmUp)
	before, err := f.settled(ctx, client, usage{})
	if err != nil {
		return false, err
	}
	t.shortRuns(ctx, warmUp, set.tasks)
	after, err := f.settled(ctx, client, before)
	if err != nil {
		return false, err
	}
	c := checkLeaks(before, after, set.tasks)
	answered := checkAnswered(t.ledger.all(), finalsOf(w, t.ledger.all()))
	r := report{set: set, checks: []check{c, answered}}
	for _, c := range r.checks {
		c.write(out)
	}
	for _, kind := range slices.Sorted(maps.Keys(after.keys)) {
		fmt.Fprintf(out, "         keys %-12s %5d, then %5d\n", kind, before.keys[kind], after.keys[kind])
	}
	ok = len(c.broken)+len(answered.broken) == 0
	fmt.Fprintf(out, "chaos: %d short runs in %s: passed: %t\n", set.tasks, time.Since(begun).Round(time.Second), ok)
	return ok, nil
}

// shortRuns chats n times, a conversation each, and returns when all have ended.
func (t *traffic) shortRuns(ctx context.Context, from, n int) {
	places := make(chan struct{}, atOnce)
	var all sync.WaitGroup
	for i := range n {
		places <- struct{}{}
		all.Go(func() {
			t.chat(ctx, step{place: inChat, thread: 2*(from+i) + 1, orders: script.Orders{
				Token: script.Token(from + i), Work: shortWork,
			}})
			<-places
		})
	}
	all.Wait()
}

// settled returns the fleet's usage when it is within the bounds of an earlier one, or after a while.
func (f *fleet) settled(ctx context.Context, client redis.UniversalClient, before usage) (u usage, err error) {
	ctx, cancel := context.WithTimeout(ctx, settleFor)
	defer cancel()
	for {
		pause(ctx, 3*time.Second)
		if u, err = f.usage(context.WithoutCancel(ctx), client); err != nil || ctx.Err() != nil {
			return u, err
		}
		if before.open != nil && len(checkOpen(before, u).broken) == 0 {
			return u, nil
		}
	}
}

func (f *fleet) usage(ctx context.Context, client redis.UniversalClient) (usage, error) {
	u := usage{open: map[string]int{}, keys: map[string]int{}}
	for _, p := range append([]*process{f.door}, f.workers...) {
		fds, err := os.ReadDir("/proc/" + itoa(p.pid()) + "/fd")
		if err != nil {
			return u, fmt.Errorf("count descriptors: %w", err)
		}
		goroutines, err := p.goroutines(ctx)
		if err != nil {
			return u, err
		}
		u.open[p.name+": descriptors"], u.open[p.name+": goroutines"] = len(fds), goroutines
	}
	keys := client.Scan(ctx, 0, "*", 1000).Iterator()
	for keys.Next(ctx) {
		name := strings.TrimPrefix(keys.Val(), prefix)
		kind, _, _ := strings.Cut(name, ":")
		if strings.HasPrefix(name, "asynq:") {
			kind = "asynq"
		}
		u.keys[kind]++
	}
	if err := keys.Err(); err != nil {
		return u, fmt.Errorf("count keys: %w", err)
	}
	return u, nil
}

var goroutineMetric = regexp.MustCompile(`^go_goroutines ([0-9]+)`)

func (p *process) goroutines(ctx context.Context) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.addr+"/metrics", nil) //nolint:gosec // the harness's own program, on loopback
	if err != nil {
		return 0, fmt.Errorf("count goroutines: %w", err)
	}
	req.Header.Set("Authorization", "Bearer "+metricsToken)
	resp, err := http.DefaultClient.Do(req) //nolint:gosec // likewise
	if err != nil {
		return 0, fmt.Errorf("count goroutines: %w", err)
	}
	defer resp.Body.Close()
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		if m := goroutineMetric.FindStringSubmatch(lines.Text()); m != nil {
			return strconv.Atoi(m[1])
		}
	}
	return 0, fmt.Errorf("count goroutines of %s: %s", p.name, resp.Status)
}

// checkLeaks checks that nothing has grown with the number of tasks but what they leave on purpose.
func checkLeaks(before, after usage, tasks int) check {
	c := checkOpen(before, after)
	for kind, n := range after.keys {
		c.looked++
		grown, most := n-before.keys[kind], maxGrowth
		if slices.Contains(keysOfTasks, kind) {
			most = int(float64(tasks) * keysPerTask)
		}
		if grown > most {
			c.breaks("%d keys %s are new after %d tasks", grown, kind, tasks)
		}
	}
	slices.Sort(c.broken)
	return c
}

func checkOpen(before, after usage) check {
	c := check{name: "leaks"}
	for what, n := range after.open {
		c.looked++
		if grown := n - before.open[what]; grown > maxGrowth {
			c.breaks("%s: %d more than before", what, grown)
		}
	}
	return c
}
