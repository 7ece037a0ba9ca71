package slack

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/slack-go/slack"
)

// Slack shows below a thread that an app "is working…", where it shows that people type. It takes that from every app
// that may post (https://docs.slack.dev/changelog/2026/03/05/set-status-scope-update), in each thread that exists, and
// removes it after two minutes and with each post of the app's.
const (
	nativeEvery = 20 * time.Second // the least time between two calls for one report. A report writes each minute
	nativeLimit = 2 * time.Second  // of a call: edits wait for it
	nativeRest  = 24 * time.Hour   // without a call after Slack has refused one
)

// doing says what the agent does, in words that follow the app's name; empty while it waits for an answer. None of the
// words are the agent's.
func (p *progress) doing() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.asking > 0 {
		return ""
	}
	switch verb, _, _ := strings.Cut(p.action, " "); verb {
	case "Reading":
		return "is reading…"
	case "Searching":
		return "is searching…"
	case "Running":
		return "is running a command…"
	case "Writing", "Editing":
		return "is editing files…"
	}
	return "is working…"
}

// showNative shows what errand does below the thread, or nothing if doing is empty. Its failures fail nothing.
func (r *report) showNative(ctx context.Context, doing string) {
	now := r.now()
	early := doing != "" && now.Before(r.nativeAt.Add(nativeEvery))
	if early || doing == r.native && doing == "" || now.Before(time.Unix(r.nativeFrom.Load(), 0)) {
		return
	}
	r.native, r.nativeAt = doing, now
	call, cancel := context.WithTimeout(ctx, nativeLimit)
	defer cancel()
	err := r.api.SetAssistantThreadsStatusContext(call, slack.AssistantThreadsSetStatusParameters{
		ChannelID: r.origin.Channel, ThreadTS: r.origin.root(), Status: doing,
	})
	if pause, limited := retryAfter(err); limited {
		r.nativeFrom.Store(now.Add(pause + time.Second).Unix())
	} else if nativeRefused(err) {
		r.nativeFrom.Store(now.Add(nativeRest).Unix())
		r.log.Info("show no status below threads for a day", "err", err)
	}
}

// nativeRefused reports whether Slack would refuse other calls, too, and not only at this moment or in this thread.
func nativeRefused(err error) bool {
	passing := []string{
		"", "invalid_thread_ts", "internal_error", "fatal_error", "service_unavailable", "request_timeout",
	}
	return !gone(err) && !slices.Contains(passing, code(err))
}
