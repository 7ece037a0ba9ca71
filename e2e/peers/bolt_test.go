package peers

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/internal/fake/slackfake"
)

const (
	channel = "C0GENERAL"
	ann     = "U0ANN"
)

// bolt is a workspace with an app made with Slack's own framework.
type bolt struct {
	*testing.T
	*slackfake.Server
}

func byHTTP(t *testing.T) bolt {
	t.Helper()
	s := slackfake.New(slackfake.Config{AnswerWithin: 20 * time.Second})
	t.Cleanup(s.Close)
	var up struct{ Port int }
	node(t, []string{"SLACK_API_URL=" + s.APIURL(), "SLACK_BOT_TOKEN=xoxb-test", "SLACK_SIGNING_SECRET=slack-secret"},
		"node", "bolt.mjs", &up)
	url := fmt.Sprintf("http://127.0.0.1:%d/slack/events", up.Port)
	s.Deliver(url)
	s.Interactivity(url)
	return bolt{t, s}
}

func bySocket(t *testing.T) bolt {
	t.Helper()
	s := slackfake.New(slackfake.Config{AnswerWithin: 20 * time.Second, PingEvery: 500 * time.Millisecond})
	t.Cleanup(s.Close)
	var up struct{ Port int }
	node(t, []string{"SLACK_API_URL=" + s.APIURL(), "SLACK_BOT_TOKEN=xoxb-test", "SLACK_APP_TOKEN=xapp-test"}, "node",
		"bolt.mjs", &up)
	return bolt{t, s}
}

// until waits for the workspace to be so.
func (b bolt) until(what string, done func() bool) {
	b.Helper()
	if err := b.Wait(limited(b.T), func(*slackfake.Server) bool { return done() }); err != nil {
		b.Fatalf("%s: %v; refused: %v", what, err, b.refused())
	}
}

// refused are the calls that our workspace did not like.
func (b bolt) refused() (list []string) {
	for _, c := range b.Calls("") {
		if c.Error != "" {
			list = append(list, c.Method+": "+c.Error)
		}
	}
	return list
}

// converse is all that people and app do to each other.
func (b bolt) converse() {
	b.Helper()
	ts, err := b.Mention(b.Context(), slackfake.Message{Channel: channel, User: ann, Text: "fix it"})
	if err != nil {
		b.Fatal(err)
	}
	b.until("the answer", func() bool { return slices.Equal(b.Reactions(channel, ts), []string{"white_check_mark"}) })
	thread := b.Messages(channel, ts)
	if len(thread) != 4 {
		b.Fatalf("thread %+v", thread)
	}
	status, file, answer := thread[1], thread[2], thread[3]
	if status.Text != "still working" || status.Edits != 1 || len(file.Files) != 1 ||
		string(file.Files[0].Data) != "some notes" {
		b.Errorf("status %+v, file %+v", status, file)
	}
	want := "u0ann said <@U0ERRAND> fix it; then status at /archives/" + channel + "/p" +
		strings.ReplaceAll(status.TS, ".", "")
	var blocks []struct{ Type, Text string }
	if err := json.Unmarshal(answer.Blocks, &blocks); err != nil || answer.Text != want || blocks[0].Text != want {
		b.Errorf("answer %q, blocks %s, want %q", answer.Text, answer.Blocks, want)
	}
	if only := b.Ephemeral(channel, ann); len(only) != 1 || only[0].Text != "only you see this" {
		b.Errorf("ephemeral %+v", only)
	}
	if err := b.Press(b.Context(), ann, channel, answer.TS, "approve"); err != nil {
		b.Fatal(err)
	}
	b.until("the approval", func() bool {
		m := b.Messages(channel, ts)[3]
		return m.Text == "7 approved by "+ann && m.Blocks == nil
	})
	if _, err := b.Post(b.Context(), slackfake.Message{Channel: "D0ANN", User: ann, Text: "hello"}); err != nil {
		b.Fatal(err)
	}
	b.until("the greeting", func() bool {
		m := b.Messages("D0ANN", "")
		return len(m) == 2 && m[1].Text == "hello "+ann+", in im"
	})
	if list := b.refused(); len(list) > 0 {
		b.Errorf("refused: %v", list)
	}
}

func TestBoltByHTTP(t *testing.T) {
	t.Parallel()
	b := byHTTP(t)
	b.converse()
	for name, tc := range map[string]struct {
		opt    slackfake.SendOptions
		status int
		body   string
	}{
		"challenge":       {slackfake.SendOptions{}, http.StatusOK, "abc"},
		"retry":           {slackfake.SendOptions{RetryNum: 1}, http.StatusOK, "abc"},
		"wrong signature": {slackfake.SendOptions{WrongSignature: true}, http.StatusUnauthorized, ""},
		"unsigned":        {slackfake.SendOptions{Unsigned: true}, http.StatusUnauthorized, ""},
		"stale":           {slackfake.SendOptions{Age: 6 * time.Minute}, http.StatusUnauthorized, ""},
	} {
		resp, err := b.Send(t.Context(), map[string]any{
			"type": "url_verification", "challenge": "abc", "token": "unused",
		}, tc.opt)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		body, _ := io.ReadAll(resp.Body)
		if resp.StatusCode != tc.status || !strings.Contains(string(body), tc.body) {
			t.Errorf("%s: answered %d %s", name, resp.StatusCode, body)
		}
	}
}

func TestBoltBySocket(t *testing.T) {
	t.Parallel()
	b := bySocket(t)
	b.until("the connection", func() bool { return b.Sockets() == 1 })
	b.converse()
	for n, trouble := range []func(){func() { b.Disconnect("refresh_requested") }, b.Cut, b.Silence} {
		trouble()
		b.until("another connection", func() bool { return b.Dialled() == n+2 && b.Sockets() == 1 })
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		if _, err := b.Post(ctx, slackfake.Message{Channel: "D0ANN", User: ann, Text: "hello again"}); err != nil {
			t.Errorf("after trouble %d: %v", n, err)
		}
		cancel()
	}
	if n := b.StrayAcks(); n > 0 {
		t.Errorf("%d stray acks", n)
	}
}
