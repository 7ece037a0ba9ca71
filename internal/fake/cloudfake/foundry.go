package cloudfake

import (
	"crypto/rand"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"strings"
	"time"
)

// The application in Entra ID, and its secret.
const (
	Tenant       = "11111111-2222-3333-4444-555555555555"
	Client       = "66666666-7777-8888-9999-000000000000"
	ClientSecret = "entra-client-secret"
)

// NewFoundry starts a Foundry, and an Entra ID whose tokens live so long. It speaks TLS, as Azure's SDK demands, with
// the certificate that it returns.
func NewFoundry(model string, life time.Duration) (*Server, []byte) {
	s := start(model, life, true, func(s *Server) http.Handler {
		mux := http.NewServeMux()
		mux.HandleFunc("GET /{tenant}/v2.0/.well-known/openid-configuration",
			func(w http.ResponseWriter, _ *http.Request) {
				base := s.URL() + "/" + Tenant
				answer(w, http.StatusOK, object{
					"issuer": base + "/v2.0", "authorization_endpoint": base + "/oauth2/v2.0/authorize",
					"token_endpoint": base + "/oauth2/v2.0/token",
				})
			})
		mux.HandleFunc("GET /common/discovery/instance", func(w http.ResponseWriter, r *http.Request) {
			answer(w, http.StatusOK, object{"tenant_discovery_endpoint": s.URL() + "/" +
				Tenant + "/v2.0/.well-known/openid-configuration", "metadata": []object{}})
		})
		mux.HandleFunc("POST /"+Tenant+"/oauth2/v2.0/token", s.entraToken)
		mux.HandleFunc("POST /anthropic/v1/messages", s.message)
		mux.HandleFunc("POST /anthropic/v1/messages/count_tokens", s.message)
		return mux
	})
	return s, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.http.Certificate().Raw})
}

func (s *Server) entraToken(w http.ResponseWriter, r *http.Request) {
	if r.FormValue("client_id") != Client || r.FormValue("client_secret") != ClientSecret ||
		!strings.Contains(r.FormValue("scope"), "https://cognitiveservices.azure.com/.default") {
		s.refuse(w, http.StatusUnauthorized, "invalid_client", nil,
			object{"error": "invalid_client", "error_description": "AADSTS7000215: Invalid client secret provided."})
		return
	}
	token := "eyJ." + rand.Text()
	s.issue(token, "")
	answer(w, http.StatusOK, object{"access_token": token, "expires_in": int(s.life.Seconds()), "token_type": "Bearer"})
}

func (s *Server) message(w http.ResponseWriter, r *http.Request) {
	if _, ok := s.known(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")); !ok {
		s.refuse(w, http.StatusUnauthorized, "401", nil,
			object{"error": object{
				"code": "401", "message": "Access denied due to invalid subscription key or wrong API endpoint.",
			}})
		return
	}
	var question object
	if json.NewDecoder(r.Body).Decode(&question) != nil || question["model"] == nil {
		s.refuse(w, http.StatusBadRequest, "400", nil,
			object{"error": object{"code": "400", "message": "Malformed request"}})
		return
	}
	if !strings.HasSuffix(r.URL.Path, "/count_tokens") && !s.accept("") {
		s.refuse(w, http.StatusTooManyRequests, "429", http.Header{"Retry-After": {"1"}},
			object{"error": object{
				"code": "429", "message": "Requests have exceeded the rate limit of your current tier.",
			}})
		return
	}
	resp, err := s.ask(r, strings.TrimPrefix(r.URL.Path, "/anthropic"), question)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	pass(w, resp)
}
