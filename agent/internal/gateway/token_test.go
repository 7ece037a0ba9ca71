package gateway

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// company is a gateway in front of the model that accepts some tokens and wants a header.
type company struct {
	*httptest.Server

	mu     sync.Mutex
	valid  string
	bodies []string // of accepted requests
}

func newCompany(t *testing.T) *company {
	t.Helper()
	c := &company{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		c.mu.Lock()
		defer c.mu.Unlock()
		if req.Header.Get("Authorization") != "Bearer "+c.valid || req.Header.Get("X-Api-Key") != c.valid ||
			req.Header.Get("X-Team") != "platform" {
			http.Error(w, `{"type":"error"}`, http.StatusUnauthorized)
			return
		}
		c.bodies = append(c.bodies, string(body))
		_, _ = io.WriteString(w, `{"type":"message","usage":{"input_tokens":1,"output_tokens":1}}`)
	}))
	t.Cleanup(c.Close)
	return c
}

func (c *company) accept(token string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.valid = token
}

// A token that a command prints is used for its life, and replaced at once when it is refused. The run has another one.
func TestTokenOfACommand(t *testing.T) {
	t.Parallel()
	c := newCompany(t)
	c.accept("one")
	var mu sync.Mutex
	prints, fetched := "one", 0
	var broken error
	u := upstream(t, Config{
		BaseURL: c.URL,
		Headers: http.Header{"X-Team": {"platform"}},
		Credentials: []Named{{Token: func(context.Context) (string, error) {
			mu.Lock()
			defer mu.Unlock()
			fetched++
			return prints, broken
		}}},
	})
	if !u.Gated() {
		t.Fatal("a run would get the token itself")
	}
	g := open(t, u)
	own := u.Access(g).Credential
	if own.AuthToken == "" || own.AuthToken == "one" || own.AuthToken == g.lease.key.AuthToken {
		t.Errorf("the run has %+v", own)
	}
	ask := func(want int) {
		t.Helper()
		resp, err := http.DefaultClient.Do(request(t, g, own, messagesPath, anyQuestion))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		_, _ = io.Copy(io.Discard, resp.Body)
		if resp.StatusCode != want {
			t.Errorf("status %d, want %d", resp.StatusCode, want)
		}
	}
	set := func(token string, err error) {
		mu.Lock()
		defer mu.Unlock()
		prints, broken = token, err
	}
	ask(200)
	ask(200)
	if fetched != 1 {
		t.Errorf("the command ran %d times", fetched)
	}
	set("two", nil)
	c.accept("two") // the first one has expired
	ask(200)
	if fetched != 2 {
		t.Errorf("the command ran %d times", fetched)
	}
	if got := c.bodies[len(c.bodies)-1]; got != anyQuestion {
		t.Errorf("the repeated question is %q", got)
	}
	// A refusal that another token does not change is passed on, and so is one without another token.
	c.accept("three")
	ask(401)
	set("", errors.New("the vault is sealed"))
	ask(401)
	c.accept("two") // which the gateway still has
	ask(200)
}

// model answers 200 to one token and 401 to others.
type model struct{ valid string }

func (m *model) RoundTrip(req *http.Request) (*http.Response, error) {
	status := http.StatusUnauthorized
	if req.Header.Get("X-Api-Key") == m.valid {
		status = http.StatusOK
	}
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: http.NoBody}, nil
}

// signed returns a signer in front of m, and how to ask through it: that returns the status, or 0 with an error.
func signed(m *model, fetch func(context.Context) (string, error)) func(context.Context) (int, error) {
	s := newSigner(m, Named{Token: fetch}, Config{Log: slog.New(slog.DiscardHandler)})
	return func(ctx context.Context) (int, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://llm.corp.example"+messagesPath,
			strings.NewReader(anyQuestion))
		if err != nil {
			return 0, err
		}
		res, err := s.RoundTrip(req)
		if err != nil {
			return 0, err
		}
		return res.StatusCode, res.Body.Close()
	}
}

// hang waits as long as a command that prints a secret may take.
func hang(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	<-ctx.Done()
	return context.Cause(ctx)
}

// A command that hangs holds requests only once, and none for longer than it wants to wait. Then a refusal is the
// answer.
func TestTokenCommandHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var started atomic.Int32
		var works atomic.Bool
		ask := signed(&model{valid: "one"}, func(ctx context.Context) (string, error) {
			if started.Add(1); works.Load() {
				return "one", nil
			}
			return "", hang(ctx)
		})
		began := time.Now()
		const requests = 5
		answers := make(chan int)
		for range requests {
			go func() {
				status, _ := ask(t.Context())
				answers <- status
			}()
		}
		synctest.Wait()
		ended, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := ask(ended); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("a request that was cancelled got %v after %s", err, time.Since(began))
		}
		for range requests {
			if status := <-answers; status != http.StatusUnauthorized || time.Since(began) != 30*time.Second {
				t.Errorf("a request got %d after %s", status, time.Since(began))
			}
		}
		works.Store(true)
		if status, err := ask(t.Context()); status != http.StatusUnauthorized || started.Load() != 1 {
			t.Errorf("status %d, %v after %d commands", status, err, started.Load())
		}
		time.Sleep(failurePause) //nolint:forbidigo // in a bubble
		if status, err := ask(t.Context()); status != http.StatusOK || started.Load() != 2 {
			t.Errorf("status %d, %v after %d commands", status, err, started.Load())
		}
	})
}

// A credential whose command fails is held, the next run starts with another one, and a check says what is wrong.
func TestTokenCommandFails(t *testing.T) {
	t.Parallel()
	b := newBank(t)
	sealed := Named{Name: "sealed", Token: func(context.Context) (string, error) {
		return "", errors.New("the vault is sealed")
	}}
	u, _ := several(t, b, sealed, Named{Name: "open", Token: func(context.Context) (string, error) {
		return "open", nil
	}})
	if c := u.Check(t.Context(), "opus")[0]; c.Status != 0 || c.Problem != "the vault is sealed" {
		t.Errorf("checked %+v", c)
	}
	if status, text := ask(t, open(t, u)); status != http.StatusUnauthorized {
		t.Errorf("%d %s", status, text)
	}
	g := open(t, u)
	status, text := ask(t, g)
	if api := g.Seen(); status != http.StatusOK || api.Credential != "open" || api.Throttled() ||
		u.States()["sealed"].Until.IsZero() {
		t.Errorf("%d %s, seen %+v, known %+v", status, text, api, u.States())
	}
}

// While a command fails, the last token is used without a delay for each request.
func TestTokenCommandFailsLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		started := 0
		ask := signed(&model{valid: "one"}, func(ctx context.Context) (string, error) {
			if started++; started == 1 {
				return "one", nil
			}
			return "", hang(ctx)
		})
		expect := func(commands int) {
			t.Helper()
			if status, err := ask(t.Context()); status != http.StatusOK || started != commands {
				t.Errorf("status %d, %v after %d commands", status, err, started)
			}
		}
		expect(1)
		time.Sleep(tokenLife) //nolint:forbidigo // in a bubble
		expect(2)
		expect(2)
		time.Sleep(failurePause) //nolint:forbidigo // in a bubble
		expect(3)
	})
}

// A run that ends during a fetch does not wait for it. Other runs get the token.
func TestRunEndsDuringFetch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var started atomic.Int32
		ask := signed(&model{valid: "one"}, func(ctx context.Context) (string, error) {
			started.Add(1)
			select {
			case <-time.After(3 * time.Second):
				return "one", nil
			case <-ctx.Done():
				return "", context.Cause(ctx)
			}
		})
		began := time.Now()
		ended, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		errs := make(chan error)
		go func() {
			_, err := ask(ended)
			errs <- err
		}()
		synctest.Wait()
		go func() {
			if status, err := ask(t.Context()); status != http.StatusOK {
				t.Errorf("another run got status %d, %v", status, err)
			}
			errs <- nil
		}()
		if err := <-errs; !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("%v after %s", err, time.Since(began))
		}
		if err := <-errs; err != nil || time.Since(began) != 3*time.Second || started.Load() != 1 {
			t.Errorf("%v after %s, %d commands", err, time.Since(began), started.Load())
		}
	})
}

// A refusal that lasts does not start a command for each request.
func TestTokenIsRefusedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		started, printed, m := 0, "one", &model{valid: "one"}
		ask := signed(m, func(context.Context) (string, error) { started++; return printed, nil })
		expect := func(status, commands int) {
			t.Helper()
			if got, err := ask(t.Context()); got != status || started != commands {
				t.Errorf("status %d, %v after %d commands", got, err, started)
			}
		}
		expect(200, 1)
		m.valid, printed = "two", "two"
		expect(200, 2) // at once
		m.valid = "three"
		for range 10 {
			expect(401, 2)
		}
		time.Sleep(refusedPause) //nolint:forbidigo // in a bubble
		for range 10 {
			expect(401, 3)
		}
		printed = "three"
		time.Sleep(refusedPause) //nolint:forbidigo // in a bubble
		expect(200, 4)
	})
}

// The worker shows a company's gateway its certificate.
func TestClientCertificate(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.TLS = &tls.Config{MinVersion: tls.VersionTLS12, ClientAuth: tls.RequireAnyClientCert}
	server.TLS.VerifyConnection = func(c tls.ConnectionState) error {
		if !c.PeerCertificates[0].Equal(server.Certificate()) { // both ends have the same
			return errors.New("another certificate")
		}
		return nil
	}
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	server.StartTLS()
	t.Cleanup(server.Close)
	der, err := x509.MarshalPKCS8PrivateKey(server.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	cert, key := filepath.Join(t.TempDir(), "client.pem"), filepath.Join(t.TempDir(), "client.key")
	for name, block := range map[string]*pem.Block{
		cert: {Type: "CERTIFICATE", Bytes: server.Certificate().Raw}, key: {Type: "PRIVATE KEY", Bytes: der},
	} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, env := range []map[string]string{
		{"NODE_EXTRA_CA_CERTS": cert, "CLAUDE_CODE_CLIENT_CERT": cert, "CLAUDE_CODE_CLIENT_KEY": key},
		{"NODE_EXTRA_CA_CERTS": cert},
	} {
		u := upstream(t, Config{
			BaseURL: server.URL, Credentials: []Named{apiKey("a")},
			Getenv: func(name string) string { return env[name] },
		})
		if status, text := ask(t, open(t, u)); (status == http.StatusOK) != (len(env) == 3) {
			t.Errorf("with %v: %d %s", env, status, text)
		}
	}
}
