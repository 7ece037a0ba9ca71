package cloudfake

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v4"
)

// The project and region of the Vertex AI.
const (
	Project      = "acme-models"
	VertexRegion = "europe-west1"
)

// NewVertex starts a Vertex AI whose tokens live so long, and returns a file of credentials for
// GOOGLE_APPLICATION_CREDENTIALS.
func NewVertex(model string, life time.Duration) (*Server, []byte, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, nil, err
	}
	s := start(model, life, false, func(s *Server) http.Handler {
		mux := http.NewServeMux()
		mux.HandleFunc("POST /token", func(w http.ResponseWriter, r *http.Request) {
			s.googleToken(w, r, &key.PublicKey)
		})
		mux.HandleFunc("POST /v1/projects/"+Project+"/locations/"+
			VertexRegion+"/publishers/anthropic/models/{model}", s.predict)
		return mux
	})
	file, err := json.Marshal(map[string]string{
		"type": "service_account", "project_id": Project, "private_key_id": "1", "client_email": "errand@acme.example",
		"client_id": "1", "private_key": string(pem.EncodeToMemory(&pem.Block{
			Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key),
		})),
		"token_uri": s.URL() + "/token",
	})
	return s, file, err
}

func (s *Server) googleToken(w http.ResponseWriter, r *http.Request, key *rsa.PublicKey) {
	claims := jwt.MapClaims{}
	_, err := jwt.ParseWithClaims(r.FormValue("assertion"), claims, func(*jwt.Token) (any, error) { return key, nil })
	if scope, _ := claims["scope"].(string); err != nil || claims["aud"] != s.URL()+"/token" ||
		!strings.Contains(scope, "cloud-platform") {
		s.refuse(w, http.StatusBadRequest, "invalid_grant", nil,
			object{"error": "invalid_grant", "error_description": "Invalid JWT Signature."})
		return
	}
	token := "ya29." + rand.Text()
	s.issue(token, "")
	answer(w, http.StatusOK, object{"access_token": token, "expires_in": int(s.life.Seconds()), "token_type": "Bearer"})
}

func (s *Server) predict(w http.ResponseWriter, r *http.Request) {
	if _, ok := s.known(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")); !ok {
		s.refuse(w, http.StatusUnauthorized, "UNAUTHENTICATED", nil, object{"error": object{
			"code": 401, "status": "UNAUTHENTICATED",
			"message": "Request had invalid authentication credentials. Expected OAuth 2 access token.",
		}})
		return
	}
	model, action, _ := strings.Cut(r.PathValue("model"), ":")
	var question object
	if json.NewDecoder(r.Body).Decode(&question) != nil || question["anthropic_version"] != "vertex-2023-10-16" ||
		model != "count-tokens" && question["model"] != nil {
		s.refuse(w, http.StatusBadRequest, "INVALID_ARGUMENT", nil,
			object{"error": object{"code": 400, "status": "INVALID_ARGUMENT", "message": "Malformed request"}})
		return
	}
	path := "/v1/messages"
	switch {
	case model == "count-tokens" && action == "rawPredict":
		path += "/count_tokens"
	case action == "rawPredict", action == "streamRawPredict":
		if !s.accept("") {
			s.refuse(w, http.StatusTooManyRequests, "RESOURCE_EXHAUSTED", nil, object{"error": object{
				"code": 429, "status": "RESOURCE_EXHAUSTED",
				"message": "Quota exceeded for aiplatform.googleapis.com/online_prediction_requests_per_base_model",
			}})
			return
		}
		question["model"], question["stream"] = model, action == "streamRawPredict"
	default:
		http.NotFound(w, r)
		return
	}
	resp, err := s.ask(r, path, question)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	pass(w, resp)
}
