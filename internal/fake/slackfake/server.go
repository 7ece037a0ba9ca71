// Package slackfake is a Slack workspace made of one HTTP server: it answers the Web API and sends signed Events API
// requests.
// Tests and the demo point the real client library at it instead of mocking it.
//
// It promises: the answers, error codes and limits of Slack where we know them (each with its source at the place it
// is coded); a message that Slack would refuse is refused here; every call is recorded in the order of its arrival; ts
// and event ids are
// unique and increasing; what a predicate of Wait sees is never older than the change that woke it.
//
// It does not promise: rate limits (Fail makes them), retries (Redeliver makes them), scopes,
// attachments, markdown_text, scheduled messages, broadcast replies, tombstones, events for what the bot itself posts,
// the translation of
// markdown blocks into rich text, what Slack makes of files, changes of a modal once it is open. Streaming has no
// file here yet.
//
// All methods of Server may be called from any goroutine. Messages and calls are returned as copies, which must not
// be written to.
package slackfake

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/errand-fleet/errand/internal/fake/contract"
)

// Config describes the workspace and the app installed in it. The zero value is usable: each field says its default.
type Config struct {
	BotToken      string // the only token the Web API accepts; "xoxb-test"
	AppToken      string // the only one that opens connections in Socket Mode; "xapp-test"
	ConfigToken   string // of a person, which creates apps; "xoxe.xoxp-test"
	SigningSecret string // of the events; "slack-secret"
	TeamID        string // "T0ERRAND"
	Org           string // the enterprise that the workspace belongs to; none
	BotUserID     string // who is mentioned, and the user of what the bot posts; "U0ERRAND"
	BotID         string // the bot_id of what the bot posts; "B0ERRAND"
	AppID         string // "A0ERRAND"

	// Channels and Users give attributes to some ids. An id that is not listed still exists if it is well formed:
	// a public channel the bot is in (C…), a private one (G…), a direct message (D…), a plain member of the team (U…,
	// W…).
	Channels []Channel
	Users    []User

	// Scopes are those of the bot's token, of which every answer tells in a header and no method asks. None: there is
	// no such header.
	Scopes []string

	// DropBlocks makes a chat.update with text but without blocks remove the old blocks. Slack's reference says so
	// today; it used to say that they are kept, and people saw them kept (slack-go#1214). A client is safe only if it
	// passes with both.
	DropBlocks bool

	// AnswerWithin is how long the app may take to answer an event; 3 s, as Slack grants.
	AnswerWithin time.Duration

	// PingEvery is the time between two pings on a connection in Socket Mode; 5 s. Clients take 30 s without one for a
	// dead connection.
	PingEvery time.Duration

	// Now dates messages and calls; time.Now. It is called with the server's lock held and must not call it back.
	// Signatures always carry the real time, because verifiers compare with theirs.
	Now func() time.Time
}

func (c Config) withDefaults() Config {
	for _, d := range []struct {
		field *string
		value string
	}{
		{&c.BotToken, "xoxb-test"},
		{&c.AppToken, "xapp-test"},
		{&c.ConfigToken, "xoxe.xoxp-test"},
		{&c.SigningSecret, "slack-secret"},
		{&c.TeamID, "T0ERRAND"},
		{&c.BotUserID, "U0ERRAND"},
		{&c.BotID, "B0ERRAND"},
		{&c.AppID, "A0ERRAND"},
	} {
		if *d.field == "" {
			*d.field = d.value
		}
	}
	if c.AnswerWithin == 0 {
		c.AnswerWithin = 3 * time.Second
	}
	if c.PingEvery == 0 {
		c.PingEvery = 5 * time.Second
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// Server is one fake workspace. Make it with New, end it with Close.
type Server struct {
	cfg     Config
	url     string
	web     *http.Server
	stop    context.CancelFunc // ends what Failure.Hold holds back
	served  chan struct{}      // closed when the accept loop has ended
	client  *http.Client       // sends the events
	methods map[string]method  // by name; not written after New

	mu         sync.Mutex
	changed    chan struct{} // closed and replaced at every change: see Wait
	lastMicros int64         // the newest ts given out, in microseconds
	events     int           // event ids given out
	messages   []*record     // of all channels, in ts order
	ephemeral  []*record     // what one user alone sees, in ts order
	uploads    []*upload     // in order of their announcement
	shared     int           // files that people have sent along
	calls      []*Call       // in order of arrival
	failures   map[string][]Failure
	breaches   contract.Breaches // of the types of Slack's SDK; see Breaches
	eventURL   string
	actionURL  string
	commandURL string
	deliveries map[deliveryKey]*delivery
	triggers   map[string]*trigger
	responses  map[string]*response // by what is secret of their addresses
	views      []View               // open ones, in order of their opening
	opened     int                  // dialogs there have been
	homes      map[string]View      // home tabs, by user
	statuses   map[string]string    // what the app does, by channel and thread

	// Socket Mode.
	tickets   map[string]bool // addresses that were given out and not used
	sockets   []*socket       // open connections, in order of their greeting
	dialled   int             // connections there have been
	pongs     int             // pings that were answered
	envelopes int             // envelope ids given out
	unacked   map[string]chan json.RawMessage
	strayAcks int
	ended     bool // no connection is added any more
}

// New starts a workspace on a free loopback port. Without a free port it panics, as httptest does.
func New(cfg Config) *Server {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(fmt.Sprintf("slackfake: listen: %v", err))
	}
	ctx, stop := context.WithCancel(context.Background())
	cfg = cfg.withDefaults()
	s := &Server{
		cfg:        cfg,
		url:        "http://" + ln.Addr().String(),
		stop:       stop,
		served:     make(chan struct{}),
		client:     &http.Client{Transport: &http.Transport{}, Timeout: cfg.AnswerWithin},
		changed:    make(chan struct{}),
		failures:   make(map[string][]Failure),
		deliveries: make(map[deliveryKey]*delivery),
		triggers:   make(map[string]*trigger),
		responses:  make(map[string]*response),
		homes:      make(map[string]View),
		statuses:   make(map[string]string),
		tickets:    make(map[string]bool),
		unacked:    make(map[string]chan json.RawMessage),
	}
	s.methods = s.webAPI()
	mux := http.NewServeMux()
	mux.HandleFunc("/api/{method}", s.serveAPI)
	mux.HandleFunc("POST /upload/v1/{file}", s.serveUpload)
	mux.HandleFunc("GET /files-pri/{file}/{name}", s.serveFile)
	mux.HandleFunc("POST /actions/{team}/{ticket}", s.serveResponse)
	mux.HandleFunc("GET /link/", s.serveSocket)
	s.web = &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: 10 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}
	go func() {
		defer close(s.served)
		_ = s.web.Serve(ln) // always http.ErrServerClosed: the listener is ours alone
	}()
	return s
}

// URL is the address of the workspace, without a slash at the end. Permalinks begin with it.
func (s *Server) URL() string { return s.url }

// APIURL is what slack.OptionAPIURL wants: it ends with a slash.
func (s *Server) APIURL() string { return s.url + "/api/" }

// Close cuts all connections, held calls included, and frees the port. It may be called more than once.
func (s *Server) Close() {
	s.stop()
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	s.Cut() // the server has let go of these connections and does not close them
	_ = s.web.Close()
	<-s.served
	s.client.CloseIdleConnections()
	if all := s.Breaches(); len(all) > 0 {
		panic("slackfake: the types of Slack's SDK do not allow these calls, answers or events:\n" +
			strings.Join(all, "\n"))
	}
}

// nextTS gives out the next ts, of the form "1700000000.000100". The caller holds mu.
func (s *Server) nextTS() string {
	s.lastMicros = max(s.cfg.Now().UnixMicro(), s.lastMicros+1)
	return formatTS(s.lastMicros)
}

func formatTS(micros int64) string { return fmt.Sprintf("%010d.%06d", micros/1e6, micros%1e6) }
