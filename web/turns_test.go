package web

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/errand-fleet/errand/internal/await"
	"github.com/errand-fleet/errand/internal/goroutines"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/policy"
	"github.com/errand-fleet/errand/web/auth"
	"github.com/errand-fleet/errand/web/console"
)

const maxRenders = 4 // as in console

// turnstile blocks reads of histories until as many requests as come counts have read their task and maxRenders are
// here.
type turnstile struct {
	come      sync.WaitGroup // Done when a request reads its task
	now, most atomic.Int64   // readers of a history
}

func (s *turnstile) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (s *turnstile) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if slices.ContainsFunc(cmds, func(cmd redis.Cmder) bool { return cmd.Name() == "xrevrange" }) {
			now := s.now.Add(1)
			defer s.now.Add(-1)
			for most := s.most.Load(); now > most && !s.most.CompareAndSwap(most, now); most = s.most.Load() {
			}
			s.come.Wait()
			// they have a slot each, but may not have got here yet
			await.Holds(ctx, func() bool { return s.most.Load() >= maxRenders })
		}
		return next(ctx, cmds)
	}
}

func (s *turnstile) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if key, _ := cmd.Args()[len(cmd.Args())-1].(string); cmd.Name() == "hgetall" && strings.Contains(key, ":task:") {
			defer s.come.Done()
		}
		return next(ctx, cmd)
	}
}

// A few pages are rendered at a time, however many are requested, and all are answered.
func TestPagesOfTasksTakeTurns(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	id := h.submit(1)
	const asked = 5 * maxRenders
	s := &turnstile{}
	s.come.Add(asked)
	h.redis.AddHook(s)
	var all sync.WaitGroup
	for range asked {
		w, r := httptest.NewRecorder(), h.request(http.MethodGet, "/tasks/"+id, "", nil)
		all.Go(func() {
			if h.handler.ServeHTTP(w, r); w.Code != http.StatusOK {
				t.Errorf("a page is answered with %d: %s", w.Code, w.Body)
			}
		})
	}
	all.Wait()
	if most := s.most.Load(); most != maxRenders {
		t.Errorf("%d pages were rendered at once, want %d", most, maxRenders)
	}
}

// Pages of conversations have timelines as well, and wait while all slots are taken.
func TestPagesOfConversationsTakeTurns(t *testing.T) {
	t.Parallel()
	h := newChat(t)
	h.say(url.Values{"message": {"Hi"}})
	id := h.only()
	s := &turnstile{}
	s.come.Add(maxRenders + 1) // one more than come, until the end of the test
	h.redis.AddHook(s)
	var all sync.WaitGroup
	for range maxRenders {
		w, r := httptest.NewRecorder(), h.request(http.MethodGet, "/tasks/"+id, "", nil)
		all.Go(func() { h.handler.ServeHTTP(w, r) })
	}
	await.Until(t, "all slots are taken", func() bool { return s.now.Load() >= maxRenders })
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	w, answered := httptest.NewRecorder(), make(chan struct{})
	go func() {
		defer close(answered)
		h.handler.ServeHTTP(w, h.request(http.MethodGet, "/chat/t-1", "", nil).WithContext(ctx))
	}()
	rendered := func() bool { return s.now.Load() > maxRenders }
	if !goroutines.Await(rendered, 1, "web.TestPagesOfConversationsTakeTurns", "(*Console).renderSlot(", "[select") {
		t.Error("a fifth page is rendered")
	}
	cancel() // the client gives up
	s.come.Done()
	<-answered
	if w.Body.Len() != 0 {
		t.Errorf("a fifth page was rendered: %s", w.Body)
	}
	all.Wait()
}

// A forge that hangs delays the conversations of those whom it has to be asked about, and nobody else's page.
func TestConversationsDoNotWaitForTheForgeInASlot(t *testing.T) {
	t.Parallel()
	hangs, asked, hold := atomic.Bool{}, make(chan struct{}, maxRenders), make(chan struct{})
	h, _ := withOpenID(t, func(c *Config) {
		c.Chat = console.Chat{Source: poster{}}
		c.Access = &auth.Access{Grants: []auth.Grant{{Role: policy.User, People: []string{"*@acme.test"}}}}
		c.Access.Forge = func(context.Context, string, string) (bool, error) {
			if hangs.Load() {
				asked <- struct{}{}
				<-hold
			}
			return true, nil
		}
	})
	for n := range maxRenders { // each about another repository: the forge is asked once about one
		h.submit(n, func(t *tasks.Task) {
			t.ID, t.Source = strings.Replace(t.ID, "-test-", "-chat-", 1), "chat"
			t.Thread, t.Repo = fmt.Sprint("chat/t-", n), fmt.Sprint("acme/app", n)
		})
	}
	id := h.submit(maxRenders)
	p := h.person()
	p.visit(p.callback("/costs"))
	hangs.Store(true)
	var all sync.WaitGroup
	for n := range maxRenders {
		same := &person{harness: h, jar: p.jar}
		all.Go(func() {
			if a, _ := same.step(http.MethodGet, fmt.Sprint("/chat/t-", n)); a.StatusCode != http.StatusOK {
				t.Errorf("a conversation is answered with %s: %s", a.Status, a.text)
			}
		})
	}
	for range maxRenders {
		<-asked
	}
	ctx := await.Context(t)
	w := httptest.NewRecorder()
	h.handler.ServeHTTP(w, h.request(http.MethodGet, "/tasks/"+id, "", nil).WithContext(ctx))
	if w.Code != http.StatusOK || w.Body.Len() == 0 {
		t.Errorf("an admin's page is answered with %d: %s", w.Code, w.Body)
	}
	close(hold)
	all.Wait()
}
