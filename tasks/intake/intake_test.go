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
	"testing"
	"testing/synctest"
	"time"

	"github.com/errand-fleet/errand/tasks"
)

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
