// Package cloudfake is the clouds that offer the model: Amazon Bedrock, Google Vertex AI and Microsoft Foundry, each a
// real HTTP server on a loopback port, with the service that hands out its credentials. A cloud refuses what the real
// one would refuse: a wrong signature, an expired credential, another path. Answers come from a model server, such as
// modelfake, in the form of the cloud.
package cloudfake

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"
)

// Server is a cloud. Its methods may be called from any goroutine.
type Server struct {
	http  *httptest.Server
	model string        // base URL
	left  chan struct{} // see Left

	mu       sync.Mutex
	life     time.Duration
	issued   int               // credentials
	secrets  map[string]issued // by key or token
	throttle int
	asked    int // accepted questions
	asker    map[string]int
	used     map[string]bool // accounts whose quota is used up
	refused  []string
}

// issued is a credential.
type issued struct {
	secret string
	until  time.Time
}

type object = map[string]any

func start(model string, life time.Duration, tls bool, routes func(*Server) http.Handler) *Server {
	s := &Server{
		model: model, life: life, secrets: map[string]issued{}, asker: map[string]int{}, used: map[string]bool{},
		left: make(chan struct{}, 1),
	}
	if tls {
		s.http = httptest.NewTLSServer(routes(s))
	} else {
		s.http = httptest.NewServer(routes(s))
	}
	return s
}

// Close ends the server.
func (s *Server) Close() { s.http.Close() }

// URL is the base of everything that the cloud serves.
func (s *Server) URL() string { return s.http.URL }

// Throttle refuses the next questions as a cloud does that is asked too much.
func (s *Server) Throttle(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.throttle = n
}

// Account lets requests in that are signed with the credential of an account, and refuses questions of it if its quota
// is used up.
func (s *Server) Account(id, secret string, used bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.secrets[id], s.used[id] = issued{secret, time.Now().Add(time.Hour)}, used
}

// AskedBy returns how many questions of an account were accepted.
func (s *Server) AskedBy(id string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asker[id]
}

// exhausted reports whether the quota of an account is used up.
func (s *Server) exhausted(account string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used[account]
}

// Left gets a value when someone has gone away before their question was answered.
func (s *Server) Left() <-chan struct{} { return s.left }

// Asked returns how many questions were accepted, how many credentials were handed out, and why requests were refused.
func (s *Server) Asked() (questions, credentials int, refused []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked, s.issued, append([]string(nil), s.refused...)
}

// Secrets returns every credential that was handed out.
func (s *Server) Secrets() (all []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, one := range s.secrets {
		all = append(all, name)
		if one.secret != "" {
			all = append(all, one.secret)
		}
	}
	return all
}

// issue hands out a credential.
func (s *Server) issue(name, secret string) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.issued++
	until := time.Now().Add(s.life)
	s.secrets[name] = issued{secret, until}
	return until
}

// known returns a credential that is valid.
func (s *Server) known(name string) (secret string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one, ok := s.secrets[name]
	return one.secret, ok && time.Now().Before(one.until)
}

// refuse answers with an error in the form of the cloud.
func (s *Server) refuse(w http.ResponseWriter, status int, why string, header http.Header, body any) {
	s.mu.Lock()
	s.refused = append(s.refused, why)
	s.mu.Unlock()
	maps.Copy(w.Header(), header)
	answer(w, status, body)
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

// accept counts a question of an account, and reports whether it is answered.
func (s *Server) accept(account string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.used[account] {
		return false
	}
	if s.throttle > 0 {
		s.throttle--
		return false
	}
	s.asked++
	s.asker[account]++
	return true
}

// ask sends a question on to the model, in the form of Anthropic's API.
func (s *Server) ask(r *http.Request, path string, question object) (*http.Response, error) {
	delete(question, "anthropic_version")
	delete(question, "anthropic_beta")
	body, err := json.Marshal(question)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(r.Context(), http.MethodPost, s.model+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("X-Api-Key", "of-the-cloud")
	req.Header.Set("Anthropic-Version", "2023-06-01")
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil && r.Context().Err() != nil {
		select {
		case s.left <- struct{}{}:
		default:
		}
	}
	return resp, err
}

// pass copies an answer as it comes.
func pass(w http.ResponseWriter, resp *http.Response) {
	defer resp.Body.Close()
	w.Header().Set("Content-Type", resp.Header.Get("Content-Type"))
	w.WriteHeader(resp.StatusCode)
	buffer := make([]byte, 4096)
	for {
		n, err := resp.Body.Read(buffer)
		_, _ = w.Write(buffer[:n])
		_ = http.NewResponseController(w).Flush()
		if err == io.EOF {
			return
		}
		if err != nil {
			panic(http.ErrAbortHandler)
		}
	}
}
