package modelfake_test

import (
	"bufio"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/internal/fake/modelfake"
)

// Each turn here would keep its connection open for longer than any test runs.

func TestCloseEndsStreams(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		turn modelfake.Turn
		last string // what is sent before the silence
	}{
		"hang at once":    {modelfake.Turn{Hang: true}, `"ping"`},
		"hang after text": {modelfake.Turn{Text: "so far", Hang: true}, `"so far"`},
		"pace":            {modelfake.Turn{Text: "so far", Pace: time.Hour}, `"content_block_start"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := modelfake.New()
			defer s.Close() // the second time
			s.Answer("", c.turn)
			resp, err := post(t.Context(), s, streaming)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			body := bufio.NewReader(resp.Body)
			for line := ""; !strings.Contains(line, c.last); {
				if line, err = body.ReadString('\n'); err != nil {
					t.Fatal(err)
				}
			}
			s.Close()
			rest, err := io.ReadAll(body)
			if err == nil {
				t.Error("the stream ended as if it were complete")
			}
			if strings.Contains(string(rest), "data:") {
				t.Errorf("there was no silence: %s", rest)
			}
		})
	}
}

func TestCloseEndsWaits(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		turn modelfake.Turn
		body string
	}{
		"gate":             {modelfake.Turn{Gate: make(chan struct{})}, streaming},
		"hang, not stream": {modelfake.Turn{Hang: true}, whole},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := modelfake.New()
			started := make(chan struct{}, 1)
			c.turn.Started = started
			s.Answer("", c.turn)
			failed := make(chan error)
			go func() {
				resp, err := post(t.Context(), s, c.body)
				if err == nil {
					_ = resp.Body.Close()
				}
				failed <- err
			}()
			<-started
			s.Close()
			if err := <-failed; err == nil {
				t.Error("there was an answer")
			}
		})
	}
}

func TestClosedServerRefuses(t *testing.T) {
	t.Parallel()
	s := modelfake.New()
	s.Close()
	if resp, err := post(t.Context(), s, whole); err == nil {
		_ = resp.Body.Close()
		t.Error("there was an answer")
	}
}
