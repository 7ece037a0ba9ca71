package worker

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/rights"
	"github.com/redis/go-redis/v9"
)

// releaseFile is what the release before stored, as commands of Redis. After a release, write it with the code of that
// release, in a worktree of it: go test -run TestFleetOfTheReleaseBefore ./tasks/worker -record. Then replace the name of
// the machine by worker-1. This one is of revision f1d9fcbc, whose code differs from that of 0.1.0: data that this
// version has recorded itself would guard nothing.
const releaseFile = "testdata/release.redis"

var recordRelease = flag.Bool("record", false, "write "+releaseFile)

// stored are the tasks of releaseFile.
type stored struct{ answered, unposted, live, joined, behind, capped, fresh tasks.Task }

// stored returns the tasks. It is called once, because IDs are counted.
func (f *fleet) stored() (s stored) {
	s.answered = f.task("a", "answered")
	s.unposted = f.task("b", "unposted")
	s.live = f.task("a", "live")
	s.joined = f.task("a", "joined")
	s.behind = f.task("a", "behind")
	s.behind.Profile = agent.Write // another one, so that it is not absorbed
	s.capped = f.task("c", "capped")
	s.fresh = f.task("d", "fresh")
	s.fresh.Class = tasks.Background
	return s
}

// recordRelease stores every kind of task and writes what is in Redis in the middle of a run.
func (f *fleet) recordRelease() {
	ctx, s, runs := f.Context(), f.stored(), f.converses()
	f.worker()
	f.submit(s.answered)
	(<-runs).end <- answer("1")
	f.ending(s.answered.ID)

	f.source.mu.Lock()
	f.source.fail = func(int) error { return errors.New("away") }
	f.source.mu.Unlock()
	f.submit(s.unposted)
	(<-runs).end <- answer("2")
	for f.closes()[s.unposted.ID] == 0 {
		continue
	}

	f.submit(s.live)
	run := <-runs
	f.submit(s.joined)
	m := run.next()
	run.take(m)
	run.spec.Checkpoint(run.ctx, agent.Session{ID: "s", Data: []byte(line(run.spec.Prompt.ID) + line(m.ID))})
	f.submit(s.behind)
	f.submit(s.capped)
	f.waits(s.behind.ID)
	f.waits(s.capped.ID)
	if err := f.rdb.Set(ctx, "asynq:{background}:paused", 1, 0).Err(); err != nil { // as asynq's PauseQueue does
		f.Fatal(err)
	}
	f.submit(s.fresh)

	var commands []string
	for _, key := range must(f.rdb.Keys(ctx, "*").Result()) {
		if !passing(key) {
			commands = append(commands, f.commands(key)...)
		}
	}
	slices.Sort(commands)
	if err := os.WriteFile(releaseFile, []byte(strings.Join(commands, "\n")+"\n"), 0o600); err != nil {
		f.Fatal(err)
	}
}

// passing reports whether a key is gone soon after its process, or says when that last looked at the outbox: who looks
// later waits a minute before it posts.
func passing(key string) bool {
	return slices.ContainsFunc([]string{
		"errand:claim:", "errand:worker", "errand:leader:", "errand:looked", "asynq:servers", "asynq:workers",
		"asynq:{background}:paused",
	},
		func(prefix string) bool { return strings.HasPrefix(key, prefix) })
}

// commands returns the commands that write a key.
func (f *fleet) commands(key string) (list []string) {
	ctx := f.Context()
	add := func(args ...string) {
		for i, a := range args {
			args[i] = strconv.Quote(a)
		}
		list = append(list, strings.Join(args, " "))
	}
	switch kind := must(f.rdb.Type(ctx, key).Result()); kind {
	case "string":
		add("SET", key, must(f.rdb.Get(ctx, key).Result()))
	case "hash":
		args := []string{"HSET", key}
		fields := must(f.rdb.HGetAll(ctx, key).Result())
		for _, field := range slices.Sorted(maps.Keys(fields)) {
			args = append(args, field, fields[field])
		}
		add(args...)
	case "list":
		add(append([]string{"RPUSH", key}, must(f.rdb.LRange(ctx, key, 0, -1).Result())...)...)
	case "set":
		add(append([]string{"SADD", key}, must(f.rdb.SMembers(ctx, key).Result())...)...)
	case "zset":
		args := []string{"ZADD", key}
		for _, z := range must(f.rdb.ZRangeWithScores(ctx, key, 0, -1).Result()) {
			args = append(args, strconv.FormatFloat(z.Score, 'f', -1, 64), fmt.Sprint(z.Member))
		}
		add(args...)
	case "stream":
		for _, m := range must(f.rdb.XRange(ctx, key, "-", "+").Result()) {
			args := []string{"XADD", key, m.ID}
			for _, field := range slices.Sorted(maps.Keys(m.Values)) {
				args = append(args, field, fmt.Sprint(m.Values[field]))
			}
			add(args...)
		}
	default:
		f.Fatalf("%s is a %s", key, kind)
	}
	return list
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// load executes the commands of releaseFile.
func (f *fleet) load() {
	f.Helper()
	file, err := os.Open(releaseFile)
	if err != nil {
		f.Fatal(err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var args []any
		for rest := lines.Text(); rest != ""; rest = strings.TrimPrefix(rest, " ") {
			word, err := strconv.QuotedPrefix(rest)
			if err != nil {
				f.Fatalf("%q: %v", rest, err)
			}
			args, rest = append(args, must(strconv.Unquote(word))), rest[len(word):]
		}
		if err := f.rdb.Do(f.Context(), args...).Err(); err != nil {
			f.Fatalf("%q: %v", args, err)
		}
	}
	if err := lines.Err(); err != nil {
		f.Fatal(err)
	}
}

// TestFleetOfTheReleaseBefore lets a fleet of this version take over from one of the release before that died in the
// middle of a run, and one of a later version take over from this one: what a later version has added to records is
// still there afterwards.
func TestFleetOfTheReleaseBefore(t *testing.T) {
	t.Parallel()
	if *recordRelease {
		f := newFleet(t)
		f.policy.Limits = rights.Limits{User: 1}
		f.recordRelease()
	}
	for name, later := range map[string]bool{"before": false, "after": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t)
			f.policy.Limits = rights.Limits{User: 1}
			f.load()
			s, runs := f.stored(), f.converses()
			all := []tasks.Task{s.answered, s.unposted, s.live, s.joined, s.behind, s.capped, s.fresh}
			if later {
				f.addUnknown(all)
			}
			f.worker()
			ran := map[string]*conversing{}
			for range 4 {
				run := <-runs
				ran[run.spec.ID] = run
				run.end <- answer("done")
			}
			for _, task := range []tasks.Task{s.live, s.behind, s.capped, s.fresh} {
				if e := f.ending(task.ID); e.Kind != tasks.Answered || ran[task.ID] == nil {
					t.Errorf("%s: %+v, ran %t", task.Prompt, e, ran[task.ID] != nil)
				}
			}
			if run := ran[s.live.ID]; run != nil && (run.spec.Resume == nil || run.spec.Resume.ID != "s") {
				t.Errorf("the live run continues from %+v", run.spec.Resume)
			}
			f.equal("covered by the live run", f.ending(s.live.ID).Covers, []string{s.joined.ID})
			f.equal("answer that was not posted", f.ending(s.unposted.ID).Result.Text, "2")
			f.equal("answer that was posted", f.status(s.answered.ID).Ending.Result.Text, "1")
			f.stopAll()
			f.equal("final messages", f.closes(), map[string]int{
				s.unposted.ID: 1, s.live.ID: 1, s.behind.ID: 1, s.capped.ID: 1, s.fresh.ID: 1,
			})
			for _, keys := range []string{
				"errand:live", "errand:running", "errand:joined", "errand:outbox", "errand:waiting:*", "errand:claim:*",
				"errand:cap:*",
			} {
				if left := must(f.rdb.Keys(t.Context(), keys).Result()); len(left) > 0 {
					t.Errorf("left: %q", left)
				}
			}
			if later {
				f.hasUnknown(all)
			}
		})
	}
}

// addUnknown adds to records what a later version might.
func (f *fleet) addUnknown(all []tasks.Task) {
	f.Helper()
	member := func(key, field string) {
		if body, err := f.rdb.HGet(f.Context(), key, field).Result(); err == nil {
			f.put(key, field, strings.Replace(body, "{", `{"later":"x",`, 1))
		} else if !errors.Is(err, redis.Nil) {
			f.Fatal(err)
		}
	}
	for _, t := range all {
		f.put("errand:task:"+t.ID, "later", "x")
		member("errand:task:"+t.ID, "task")
		member("errand:task:"+t.ID, "ending")
		member("errand:checkpoint:"+t.ID, "meta")
		member("errand:session:"+t.Thread, "meta")
	}
}

func (f *fleet) hasUnknown(all []tasks.Task) {
	f.Helper()
	for _, t := range all {
		fields := must(f.rdb.HGetAll(f.Context(), "errand:task:"+t.ID).Result())
		if fields["later"] != "x" || !strings.Contains(fields["task"], `"later":"x"`) {
			f.Errorf("the record of %s lost what a later version wrote: %q", t.Prompt, fields)
		}
		if (t.Prompt == "answered" || t.Prompt == "unposted") && !strings.Contains(fields["ending"], `"later":"x"`) {
			f.Errorf("the ending of %s: %s", t.Prompt, fields["ending"])
		}
	}
}
