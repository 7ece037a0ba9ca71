package gateway

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// bank is a model that answers each credential as a test says, and notes who asked.
type bank struct {
	*httptest.Server

	mu      sync.Mutex
	answers map[string]func(http.ResponseWriter, *http.Request) // by credential; nil: 200
	asked   []string
	bodies  []string
}

func newBank(t *testing.T) *bank {
	t.Helper()
	b := &bank{answers: map[string]func(http.ResponseWriter, *http.Request){}}
	b.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		bearer, _ := strings.CutPrefix(req.Header.Get("Authorization"), "Bearer ")
		name := req.Header.Get("X-Api-Key") + bearer
		b.mu.Lock()
		b.asked, b.bodies = append(b.asked, name), append(b.bodies, string(body))
		answer := b.answers[name]
		b.mu.Unlock()
		if answer != nil {
			answer(w, req)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"type":"message","usage":{"input_tokens":1,"output_tokens":1}}`)
	}))
	t.Cleanup(b.Close)
	return b
}

// says changes the answer to a credential; nil: 200.
func (b *bank) says(credential string, answer func(http.ResponseWriter, *http.Request)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answers[credential] = answer
}

// taken returns who has asked since the last call.
func (b *bank) taken() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	asked := b.asked
	b.asked = nil
	return asked
}

// refusing answers with a status and headers.
func refusing(status int, header ...string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		for pair := range slices.Chunk(header, 2) {
			w.Header().Set(pair[0], pair[1])
		}
		apiError(w, status, "an_error", "the words of the refusal")
	}
}

// limited answers that a usage limit lasts until a time.
func limited(until time.Time) func(http.ResponseWriter, *http.Request) {
	return refusing(http.StatusTooManyRequests, "Anthropic-Ratelimit-Unified-Status", "rejected",
		"Anthropic-Ratelimit-Unified-Reset", strconv.FormatInt(until.Unix(), 10))
}

// leased returns the use of a credential.
func leased() *lease { return &lease{ring: &keyring{}, key: &key{}} }

func apiKey(name string) Named {
	return Named{Name: name, Credential: Credential{APIKey: "key-" + name}}
}

// several returns the way to a bank with credentials, and its log.
func several(t *testing.T, b *bank, credentials ...Named) (*Upstream, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	u := upstream(t, Config{BaseURL: b.URL, Credentials: credentials, Log: slog.New(slog.NewTextHandler(&log, nil))})
	return u, &log
}

// ask asks a question as the CLI of the run would.
func ask(t *testing.T, g *Gateway) (status int, text string) {
	t.Helper()
	return answerTo(t, request(t, g, g.lease.key.Credential, messagesPath, anyQuestion))
}

// A credential that the model refuses is left out until its time. The run that has it gets the refusal, and keeps it; the
// next one starts with another one.
func TestHeldCredential(t *testing.T) {
	t.Parallel()
	now := time.Now()
	credit := func(w http.ResponseWriter, _ *http.Request) {
		apiError(w, http.StatusBadRequest, "invalid_request_error",
			"Your credit balance is too low to access the Anthropic API.")
	}
	for name, c := range map[string]struct {
		answer func(http.ResponseWriter, *http.Request)
		held   time.Duration // 0: not at all
	}{
		"usage limit":                 {limited(now.Add(5 * time.Hour)), 5 * time.Hour},
		"usage limit without a reset": {refusing(429, "Anthropic-Ratelimit-Unified-Status", "rejected"), holdFor},
		"usage limit that has passed": {limited(now.Add(-time.Hour)), holdFor},
		"usage limit far ahead":       {limited(time.Unix(9999999999, 0)), holdFor},
		"usage limit in milliseconds": {limited(time.Unix(now.UnixMilli(), 0)), holdFor},
		"very long wait":              {refusing(429, "Retry-After", "7200"), longestHold},
		"long wait":                   {refusing(429, "Retry-After", "600"), 10 * time.Minute},
		"wait far ahead":              {refusing(429, "Retry-After", "2000000000"), holdFor},
		"unauthorized":                {refusing(401), holdFor},
		"payment required":            {refusing(402), holdFor},
		"forbidden":                   {refusing(403, "Retry-After", "60"), time.Minute},
		"no credit":                   {credit, holdFor},
		"short wait":                  {refusing(429, "Retry-After", "5"), 0},
		"limit without a time":        {refusing(429), 0},
		"allowed limit":               {refusing(429, "Anthropic-Ratelimit-Unified-Status", "allowed_warning"), 0},
		"overloaded":                  {refusing(529, "Retry-After", "600"), 0},
		"wrong request":               {refusing(400), 0},
		"other error":                 {refusing(500), 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBank(t)
			b.says("key-a", c.answer)
			u, log := several(t, b, apiKey("a"), apiKey("b"))
			g := open(t, u)
			status, text := ask(t, g)
			api := g.Seen()
			if status < 400 || !strings.Contains(text, "the words of the refusal") && name != "no credit" ||
				api.Credential != "a" || api.Calls != 1 || api.FreeAt.IsZero() != (c.held == 0) ||
				api.FreeAt.After(time.Now()) {
				t.Errorf("%d %s, seen %+v", status, text, api)
			}
			if c.held == 0 {
				if state := u.States()["a"]; !state.Until.IsZero() || log.Len() > 0 {
					t.Errorf("known %+v, log %s", state, log)
				}
				return
			}
			if until := u.States()["a"].Until; until.Before(now.Add(c.held).Truncate(time.Second)) ||
				until.After(time.Now().Add(c.held)) {
				t.Errorf("held until %v, want in %v", until, c.held)
			}
			if said := log.String(); !strings.Contains(said, "credential=a") || !strings.Contains(said, "until=") ||
				strings.Contains(said, "key-a") {
				t.Errorf("log %s", said)
			}
			ask(t, g)
			next := open(t, u)
			ask(t, next)
			u.keys.keys[0].state.Until = time.Time{}
			ask(t, next)
			if asked := b.taken(); !slices.Equal(asked, []string{"key-a", "key-a", "key-b", "key-b"}) ||
				!next.Seen().FreeAt.IsZero() {
				t.Errorf("asked %q, seen %+v", asked, next.Seen())
			}
		})
	}
}

// Of 100 runs at once with two credentials, one of which has reached its limit, none has that one.
func TestRunsStartWithTheOther(t *testing.T) {
	t.Parallel()
	b := newBank(t)
	b.says("key-a", limited(time.Now().Add(time.Hour)))
	u, _ := several(t, b, apiKey("a"), apiKey("b"))
	ask(t, open(t, u))
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			g, err := u.Open(Run{Note: func(string, ...any) {}})
			if err != nil {
				t.Error(err)
				return
			}
			defer g.Close()
			for range 3 {
				if status, text := ask(t, g); status != http.StatusOK {
					t.Errorf("%d %s", status, text)
				}
			}
		})
	}
	all.Wait()
	if n := len(slices.DeleteFunc(b.taken(), func(name string) bool { return name == "key-b" })); n != 1 {
		t.Errorf("the held credential was asked %d times", n)
	}
	if a, b := u.keys.keys[0].runs, u.keys.keys[1].runs; a != 1 || b != 0 { // the first run is still open
		t.Errorf("the credentials have %d and %d runs", a, b)
	}
}

// Runs are spread evenly, then by order, among the credentials that they may use.
func TestChoiceOfCredential(t *testing.T) {
	t.Parallel()
	b := newBank(t)
	u, _ := several(t, b, apiKey("a"), apiKey("b"), apiKey("c"))
	names := func(allowed ...string) (got string) {
		var opened []*Gateway
		for range 8 {
			g := open(t, u, allowed...)
			ask(t, g)
			got += g.Seen().Credential
			opened = append(opened, g)
		}
		for _, g := range opened {
			g.Close()
			g.Close() // counts once
		}
		return got
	}
	for range 2 {
		if got := names(); got != "abcabcab" {
			t.Errorf("of all: %s", got)
		}
	}
	if got := names("c", "a"); got != "acacacac" {
		t.Errorf("of two: %s", got)
	}
	if g, err := u.Open(Run{Credentials: []string{"other"}}); err == nil {
		g.Close()
		t.Error("a run without a credential has a gateway")
	}
	now := time.Now()
	for i, k := range u.keys.keys {
		k.state.Until, k.state.HeldAt = now.Add(time.Duration(3-i)*time.Hour), now
	}
	if got := names("a", "b"); got != "bbbbbbbb" {
		t.Errorf("of held ones: %s", got)
	}
	if until := u.keys.keys[1].state.Until; !until.IsZero() {
		t.Errorf("a credential that the model accepts is held until %v", until)
	}
}

// A run whose credential is held knows when to come again, with any that is permitted.
func TestNoOtherCredential(t *testing.T) {
	t.Parallel()
	now, held := time.Now(), apiKey("b")
	subscription := Named{Name: "s", Credential: Credential{OAuthToken: "token-s"}}
	for name, c := range map[string]struct {
		credentials []Named
		allowed     []string
		freeAt      time.Time
	}{
		"all held":            {[]Named{apiKey("a"), held}, nil, now.Add(time.Hour)},
		"only one allowed":    {[]Named{apiKey("a"), apiKey("c")}, []string{"a"}, now.Add(2 * time.Hour)},
		"only one configured": {[]Named{apiKey("a")}, nil, time.Time{}},
		"another one is free": {[]Named{apiKey("a"), apiKey("c")}, nil, now},
		"another kind":        {[]Named{apiKey("a"), subscription}, nil, now},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBank(t)
			b.says("key-a", limited(now.Add(2*time.Hour)))
			u, _ := several(t, b, c.credentials...)
			for _, k := range u.keys.keys {
				if k.Name == held.Name {
					u.keys.hold(k, now.Add(time.Hour), http.StatusTooManyRequests)
				}
			}
			g := open(t, u, c.allowed...)
			status, text := ask(t, g)
			if status != http.StatusTooManyRequests || !strings.Contains(text, "the words of the refusal") {
				t.Errorf("%d %s", status, text)
			}
			api := g.Seen()
			if late := api.FreeAt.Sub(c.freeAt); c.freeAt.IsZero() != api.FreeAt.IsZero() || late < -time.Second ||
				late > time.Minute {
				t.Errorf("free at %v, want %v", api.FreeAt, c.freeAt)
			}
			if api.Errors[http.StatusTooManyRequests] != 1 || api.Limits["unified-status"] != "rejected" {
				t.Errorf("seen %+v", api)
			}
			next := open(t, u, c.allowed...)
			if kind := u.Access(next).Credential; name == "another kind" && kind.OAuthToken == "" {
				t.Errorf("the next run has %+v", kind)
			}
		})
	}
}

// lacking answers that an account of AWS lacks the model.
func lacking(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("X-Amzn-Errortype", "AccessDeniedException")
	apiError(w, http.StatusForbidden, "an_error", "You don't have access to the model.")
}

// A run whose credential is refused knows when one is free that may serve it: none that is held for another reason than
// a limit.
func TestFreeCredentialThatMayServe(t *testing.T) {
	t.Parallel()
	now := time.Now()
	soon, later := now.Add(time.Minute), now.Add(2*time.Hour)
	for name, c := range map[string]struct {
		other  KeyState
		answer func(http.ResponseWriter, *http.Request)
		freeAt time.Time // zero: never
	}{
		"the other is free":     {KeyState{}, refusing(401), now},
		"it is limited":         {KeyState{Until: later, Status: 429}, lacking, later},
		"it is limited longer":  {KeyState{Until: later, Status: 429}, limited(soon), soon},
		"it is rejected":        {KeyState{Until: later, Status: 401}, limited(soon), soon},
		"both are rejected":     {KeyState{Until: later, Status: 403}, refusing(401), time.Time{}},
		"both lack the model":   {KeyState{Until: later, Status: 403}, lacking, time.Time{}},
		"its failed fetch ends": {KeyState{Until: soon, Status: 503}, refusing(402), soon},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBank(t)
			b.says("key-a", c.answer)
			u, _ := several(t, b, apiKey("a"), apiKey("b"))
			c.other.HeldAt = now
			u.keys.keys[1].state = c.other
			g := open(t, u, "a", "b")
			if status, _ := ask(t, g); status == http.StatusOK || !u.keys.keys[0].held(now) {
				t.Errorf("status %d, known %+v", status, u.States()["a"])
			}
			at := g.Seen().FreeAt
			if late := at.Sub(c.freeAt); at.IsZero() != c.freeAt.IsZero() || late < -time.Second ||
				late > 30*time.Second {
				t.Errorf("free at %v, want %v", at, c.freeAt)
			}
		})
	}
}

// A run remembers that another credential is free while an answer arrives that was under way before the refusal. The
// answer to a later question says that its own is accepted again.
func TestAnswerBesideARefusal(t *testing.T) {
	t.Parallel()
	b := newBank(t)
	arrived, refused := make(chan struct{}), make(chan struct{})
	b.says("key-a", func(w http.ResponseWriter, _ *http.Request) {
		close(arrived)
		<-refused
		_, _ = io.WriteString(w, `{"type":"message"}`)
	})
	u, _ := several(t, b, apiKey("a"), apiKey("b"))
	g := open(t, u)
	done := make(chan struct{})
	go func() {
		defer close(done)
		ask(t, g)
	}()
	<-arrived
	b.says("key-a", limited(time.Now().Add(time.Hour)))
	ask(t, g)
	close(refused)
	<-done
	if g.Seen().FreeAt.IsZero() {
		t.Error("an earlier question's answer hides the refusal")
	}
	b.says("key-a", nil)
	ask(t, g)
	if at := g.Seen().FreeAt; !at.IsZero() {
		t.Errorf("free at %v although the own credential is accepted", at)
	}
}

// The sub-agents of a run ask at once, and hold its credential once.
func TestHoldsOnceForAllQuestions(t *testing.T) {
	t.Parallel()
	b := newBank(t)
	var arrived sync.WaitGroup
	arrived.Add(5)
	b.says("key-a", func(w http.ResponseWriter, req *http.Request) {
		arrived.Done()
		arrived.Wait()
		limited(time.Now().Add(time.Hour))(w, req)
	})
	u, log := several(t, b, apiKey("a"), apiKey("b"))
	g := open(t, u)
	var all sync.WaitGroup
	for range 5 {
		all.Go(func() {
			if status, text := ask(t, g); status != http.StatusTooManyRequests {
				t.Errorf("%d %s", status, text)
			}
		})
	}
	all.Wait()
	if asked := b.taken(); len(asked) != 5 || strings.Count(log.String(), "is held") != 1 {
		t.Errorf("asked %q, log %s", asked, log)
	}
}

// Counting tokens has its own rights and limits: a refusal there holds no credential, and it does not show that a
// held one answers questions again.
func TestCountingTokensWithSeveralCredentials(t *testing.T) {
	t.Parallel()
	b := newBank(t)
	b.says("key-a", refusing(http.StatusUnauthorized))
	u, _ := several(t, b, apiKey("a"), apiKey("b"))
	g := open(t, u)
	if status, text := answerTo(t, request(t, g, g.lease.key.Credential,
		messagesPath+"/count_tokens", anyQuestion)); status != http.StatusUnauthorized || g.Seen().Calls != 0 ||
		u.keys.keys[0].held(time.Now()) {
		t.Errorf("%d %s, %+v", status, text, g.Seen())
	}
	b.says("key-a", nil)
	u.keys.hold(u.keys.keys[0], time.Now().Add(time.Hour), http.StatusUnauthorized)
	g = open(t, u, "a")
	for _, c := range []struct {
		path string
		held bool
	}{{messagesPath + "/count_tokens", true}, {messagesPath, false}} {
		if status, text := answerTo(t, request(t, g, g.lease.key.Credential,
			c.path, anyQuestion)); status != http.StatusOK || u.keys.keys[0].held(time.Now()) != c.held {
			t.Errorf("%s: %d %s, known %+v", c.path, status, text, u.States())
		}
	}
}
