package intake

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/errand-fleet/errand/tasks"
)

// Concurrent requests for the same key should make one call, and the cache should keep no more answers than its size.
func TestCacheAsksOnce(t *testing.T) {
	t.Parallel()
	c := Cache[int]{Limit: time.Minute, Life: time.Minute, Now: time.Now}
	var calls atomic.Int32
	hold := make(chan struct{})
	var asking sync.WaitGroup
	for range 8 {
		asking.Go(func() {
			v, err := c.Get(t.Context(), "a", func(context.Context) (int, error) {
				calls.Add(1)
				<-hold
				return 1, nil
			})
			if v != 1 || err != nil {
				t.Error(v, err)
			}
		})
	}
	close(hold)
	asking.Wait()
	if n := calls.Load(); n != 1 {
		t.Errorf("asked %d times", n)
	}
	for i := range maxCached + 10 {
		if _, err := c.Get(t.Context(), fmt.Sprint(i), func(context.Context) (int, error) {
			return i, nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(c.entries); n > maxCached {
		t.Errorf("%d are kept", n)
	}
}

func TestCacheExpires(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := Cache[string]{Limit: time.Minute, Life: time.Minute, ErrorLife: time.Second, Now: time.Now}
		get := func(answer string, err error) string {
			v, err := c.Get(t.Context(), "k", func(context.Context) (string, error) { return answer, err })
			if err != nil {
				return err.Error()
			}
			return v
		}
		failed := errors.New("failed")
		for _, step := range []struct {
			wait   time.Duration
			answer string
			err    error
			want   string
		}{
			{0, "", failed, "failed"},
			{500 * time.Millisecond, "one", nil, "failed"},
			{time.Second, "one", nil, "one"},
			{30 * time.Second, "two", nil, "one"},
			{time.Minute, "two", nil, "two"},
		} {
			time.Sleep(step.wait) //nolint:forbidigo // of the bubble's clock
			if got := get(step.answer, step.err); got != step.want {
				t.Errorf("after %s: %s, want %s", step.wait, got, step.want)
			}
		}
	})
}

// A caller that has no more time does not wait for another's call, and an answer without a life is known for good.
func TestCacheWaits(t *testing.T) {
	t.Parallel()
	c := Cache[string]{Limit: time.Minute, Now: time.Now}
	begun, hold := make(chan struct{}), make(chan struct{})
	done := make(chan string)
	go func() {
		v, _ := c.Get(t.Context(), "", func(context.Context) (string, error) {
			close(begun)
			<-hold
			return "me", nil
		})
		done <- v
	}()
	<-begun
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Get(ctx, "", nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, ok := c.Peek(""); ok {
		t.Error("known before it was answered")
	}
	close(hold)
	if v := <-done; v != "me" {
		t.Error(v)
	}
	if v, ok := c.Peek(""); v != "me" || !ok {
		t.Error(v, ok)
	}
}

// A question outlives the caller that asked it first: others wait for its answer, until it takes too long.
func TestCacheOutlivesCaller(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := Cache[string]{Limit: time.Minute, ErrorLife: time.Hour, Now: time.Now}
		var latency time.Duration
		ask := func(ctx context.Context) (string, error) {
			select {
			case <-time.After(latency):
				return "me", nil
			case <-ctx.Done():
				return "", ctx.Err()
			}
		}
		for _, s := range []struct {
			key     string
			latency time.Duration
			want    string
			err     error
		}{
			{"answered", 30 * time.Second, "me", nil},
			{"too late", 2 * time.Minute, "", context.DeadlineExceeded},
		} {
			latency = s.latency
			short, cancel := context.WithTimeout(t.Context(), time.Second)
			if _, err := c.Get(short, s.key, ask); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s, first caller: %v", s.key, err)
			}
			cancel()
			begun := time.Now()
			if v, err := c.Get(t.Context(), s.key, ask); v != s.want || !errors.Is(err, s.err) {
				t.Errorf("%s, second caller: %q, %v", s.key, v, err)
			}
			if took := time.Since(begun); took >= time.Minute {
				t.Errorf("%s: asked again: %s", s.key, took)
			}
		}
	})
}

func TestBackground(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	b := NewBackground(slog.New(slog.NewTextHandler(&log, nil)))
	hold := make(chan struct{})
	var all sync.WaitGroup
	all.Add(MaxBackground)
	for range MaxBackground {
		b.Go(t.Context(), func(context.Context) { <-hold; all.Done() })
	}
	if b.Go(t.Context(), nil) || !strings.Contains(log.String(), "background call skipped") {
		t.Errorf("one too many was made: %s", log.String())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if b.GoWhenFree(ctx, nil) {
		t.Error("waited for too long")
	}
	close(hold)
	all.Wait()
	done := make(chan struct{})
	if !b.GoWhenFree(t.Context(), func(context.Context) { close(done) }) {
		t.Error("not made")
	}
	<-done
}

func TestRetryLimited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		busy := errors.New("busy")
		limited := func(err error) (time.Duration, bool) { return 4 * time.Second, errors.Is(err, busy) }
		for _, c := range []struct {
			failures, calls int
			want            error
		}{{0, 1, nil}, {2, 3, nil}, {3, 3, busy}} {
			calls := 0
			err := RetryLimited(t.Context(), 10*time.Second, limited, func() error {
				if calls++; calls <= c.failures {
					return busy
				}
				return nil
			})
			if calls != c.calls || !errors.Is(err, c.want) {
				t.Errorf("%d failures: %d calls, %v", c.failures, calls, err)
			}
		}
	})
}

func TestReadBody(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]int{"": 200, "12345": 200, "123456": 413} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(body))
		got, status := ReadBody(httptest.NewRecorder(), r, 5)
		if status != want || status == 200 && string(got) != body {
			t.Errorf("%q: %d %q", body, status, got)
		}
	}
}

func TestLargeBodies(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		large := make(LargeBodies, 1)
		read := func(ctx context.Context, size, want int) (release func()) {
			t.Helper()
			r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/", strings.NewReader(strings.Repeat("x", size)))
			release = large.Bound(r)
			body, status := ReadBody(httptest.NewRecorder(), r, 2*largeBody)
			if status != want || status == 200 && len(body) != size {
				t.Errorf("%d bytes: %d with %d bytes, want %d", size, status, len(body), want)
			}
			return release
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		release := read(t.Context(), largeBody+1, 200)
		read(t.Context(), largeBody+1, 503)()
		read(gone, largeBody+1, 503)()
		read(t.Context(), largeBody-1, 200)()
		time.AfterFunc(slotWait/2, release)
		read(t.Context(), 2*largeBody, 200)()
		read(t.Context(), 2*largeBody+1, 413)()
		if len(large) != 0 {
			t.Error("a slot is still taken")
		}
	})
}

func TestInbound(t *testing.T) {
	t.Parallel()
	var in Inbound
	now := time.Now()
	in.Refused(now)
	if !in.LastRefused() || !in.Last().IsZero() {
		t.Error("a refused request")
	}
	in.Accepted(now.Add(time.Second))
	if in.LastRefused() || !in.Last().Equal(now.Add(time.Second)) {
		t.Error("an accepted event")
	}
	in.ConnectionFailed(errors.New("no route"))
	if in.ConnectionErr() == nil {
		t.Error("no connection and no error")
	}
	in.Connected()
	if err := in.ConnectionErr(); err != nil {
		t.Error(err)
	}
	in.Disconnected()
	if in.ConnectionErr() == nil {
		t.Error("the connection has ended")
	}
}

func TestQuestionTexts(t *testing.T) {
	t.Parallel()
	same := func(s string) string { return s }
	for want, q := range map[string]tasks.Question{
		"":                        {},
		"⏱ Not answered in time.": {Answer: &tasks.Answer{Expired: true}},
		"⏱ Not approved in time.": {Consent: "go test", Answer: &tasks.Answer{Expired: true}},
		"✅ ann: blue":             {Answer: &tasks.Answer{By: "ann", Text: " blue\n"}},
	} {
		if got := Outcome(q, same, same); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := AnsweredBefore(tasks.Answer{
		By: "ann", Text: strings.Repeat("x", 500),
	}); len([]rune(got)) != len("ann has already answered: ")+maxAnswer {
		t.Errorf("%q", got)
	}
}

func ExampleParseWord() {
	for _, text := range []string{"Stop!", "status\u00a0.", "stop the press"} {
		word, ok := ParseWord(text)
		fmt.Println(word, ok)
	}
	// Output:
	// stop true
	// status true
	// stop the press false
}

// oneMemo is a Memory with one value.
type oneMemo struct{ body json.RawMessage }

func (m *oneMemo) Memo(context.Context, string) (json.RawMessage, error) { return m.body, nil }

func (m *oneMemo) ChangeMemo(_ context.Context, _ string,
	change func(json.RawMessage) (json.RawMessage, error),
) (err error) {
	m.body, err = change(m.body)
	return err
}

// A value keeps what a later version has added to it.
func TestMemoKeepsUnknownMembers(t *testing.T) {
	t.Parallel()
	type inner struct{ Seen int }
	type value struct {
		inner
		Name string   `json:"name,omitempty"`
		List []string `json:"list"`
	}
	for before, want := range map[string]string{
		`{"name":"a","later":{"x":[1]},"Seen":1,"list":["b"]}`: `{"Seen":2,"later":{"x":[1]},"list":["b"]}`,
		`{"NAME":"a"}`:         `{"Seen":1,"list":null}`,
		`{"later":1,"name":2}`: `{"Seen":1,"later":1,"list":null}`,
		``:                     `{"Seen":1,"list":null}`,
		`[]`:                   `{"Seen":1,"list":null}`,
	} {
		store := &oneMemo{json.RawMessage(before)}
		m := Memo[value]{Memory: store, Log: slog.New(slog.DiscardHandler)}
		err := m.Change(t.Context(), func(v *value) error { v.Seen++; v.Name = ""; return nil })
		if err != nil || string(store.body) != want {
			t.Errorf("%s becomes %s, %v; want %s", before, store.body, err, want)
		}
	}
	store := &oneMemo{json.RawMessage(`{"a":1}`)}
	err := Memo[map[string]int]{Memory: store, Log: slog.New(slog.DiscardHandler)}.Change(t.Context(),
		func(v *map[string]int) error { delete(*v, "a"); return nil })
	if err != nil || string(store.body) != `{}` {
		t.Errorf("a map becomes %s, %v", store.body, err)
	}
}
