package door

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"time"
)

const signingSecret = "bench-secret"

// Slack answers every call of the Web API with success, at almost no cost, and generates events.
type Slack struct {
	*httptest.Server
	Final  chan struct{} // a final message was posted
	wait   atomic.Int64  // before each answer
	fails  atomic.Bool
	events int // generated so far; used by one goroutine
}

// NewSlack starts it. Close ends it.
func NewSlack() *Slack {
	s := &Slack{Final: make(chan struct{}, 1000)}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/chat.postMessage") && strings.Contains(r.FormValue("metadata"), `"final/`) {
			s.Final <- struct{}{}
		}
		_ = r.ParseForm() // the server notices the end of a connection only once the body is read
		if !Until(r.Context(), time.Now().Add(time.Duration(s.wait.Load()))) {
			return
		}
		if s.fails.Load() {
			http.Error(w, "bench", http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		answer := json.RawMessage(`{"ok":true,"team_id":"T0BENCH","user_id":"U0BENCH","bot_id":"B0BENCH","channel":"C0BENCH","ts":"1700000000.000001","messages":[]}`)
		if strings.HasSuffix(r.URL.Path, "/users.info") {
			answer = json.RawMessage(`{"ok":true,"user":{"id":"U0ANN","team_id":"T0BENCH"}}`)
		}
		if strings.HasSuffix(r.URL.Path, "/conversations.replies") {
			answer = fmt.Appendf(nil, `{"ok":true,"messages":[{"ts":%q}]}`, r.FormValue("oldest")) // none is deleted
		}
		_ = json.NewEncoder(w).Encode(answer)
	}))
	return s
}

// Trouble makes the Web API answer only after some time, and with an error.
func (s *Slack) Trouble(wait time.Duration, fails bool) {
	s.wait.Store(int64(wait))
	s.fails.Store(fails)
}

// Env returns the settings of an app of this Slack.
func (s *Slack) Env() []string {
	return []string{
		"SLACK_BOT_TOKEN=xoxb-bench", "SLACK_SIGNING_SECRET=" + signingSecret, "SLACK_API_URL=" + s.URL + "/api/",
	}
}

// Requests are n events for an app at an address.
func (s *Slack) Requests(host, path string, n int) [][]byte {
	list := make([][]byte, n)
	for i := range list {
		list[i] = s.Request(host, path, "please look at the build")
	}
	return list
}

// Request returns a signed event as bytes, with the size and form of Slack's. Each is a different message.
func (s *Slack) Request(host, path, text string) []byte {
	s.events++
	n := s.events
	now := time.Now()
	ts := fmt.Sprintf("%d.%06d", now.Unix(), n%1_000_000)
	body := fmt.Sprintf(`{"token":"unused","team_id":"T0BENCH","context_team_id":"T0BENCH","api_app_id":"A0BENCH","event":{"type":"app_mention",`+
		`"user":"U0ANN","ts":%[1]q,"client_msg_id":"5fa6eb08-6b01-4a2e-a6d2-%012[2]d","text":"<@U0BENCH> %[3]s","team":"T0BENCH","blocks":[{`+
		`"type":"rich_text","block_id":"b1","elements":[{"type":"rich_text_section","elements":[{"type":"user","user_id":"U0BENCH"},`+
		`{"type":"text","text":" %[3]s"}]}]}],"channel":"C0BENCH","event_ts":%[1]q},"type":"event_callback","event_id":"Ev%010[2]d",`+
		`"event_time":%[4]d,"authorizations":[{"enterprise_id":null,"team_id":"T0BENCH","user_id":"U0BENCH","is_bot":true,`+
		`"is_enterprise_install":false}],"is_ext_shared_channel":false,"event_context":"4-eyJldCI6ImFwcF9tZW50aW9uIiwidGlkIjoiVDBCRU5DSCJ9"}`,
		ts, n, text, now.Unix())
	mac := hmac.New(sha256.New, []byte(signingSecret))
	fmt.Fprintf(mac, "v0:%d:%s", now.Unix(), body)
	return fmt.Appendf(nil,
		"POST %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: Slackbot 1.0 (+https://api.slack.com/robots)\r\n"+
			"Content-Type: application/json\r\nAccept: */*\r\nX-Slack-Request-Timestamp: %d\r\n"+
			"X-Slack-Signature: v0=%s\r\nContent-Length: %d\r\n\r\n%s",
		path, host, now.Unix(), hex.EncodeToString(mac.Sum(nil)), len(body), body)
}
