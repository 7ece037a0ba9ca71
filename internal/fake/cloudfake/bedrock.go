package cloudfake

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
	"github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// Region is that of the signatures.
const Region = "eu-west-1"

// CredentialsPath serves credentials of AWS in the way of a container, for AWS_CONTAINER_CREDENTIALS_FULL_URI.
const CredentialsPath = "/credentials"

// NewBedrock starts a Bedrock whose credentials live so long.
func NewBedrock(model string, life time.Duration) *Server {
	return start(model, life, false, func(s *Server) http.Handler {
		mux := http.NewServeMux()
		mux.HandleFunc("GET "+CredentialsPath, s.awsCredentials)
		mux.HandleFunc("GET /inference-profiles", func(w http.ResponseWriter, r *http.Request) {
			if s.signed(w, r, nil) {
				answer(w, http.StatusOK, object{"inferenceProfileSummaries": []object{}})
			}
		})
		mux.HandleFunc("POST /model/{model}/{action}", s.invoke)
		return mux
	})
}

func (s *Server) awsCredentials(w http.ResponseWriter, _ *http.Request) {
	id, secret := "ASIA"+rand.Text()[:16], "aws-secret-"+rand.Text()
	until := s.issue(id, secret)
	answer(w, http.StatusOK, object{
		"AccessKeyId": id, "SecretAccessKey": secret, "Token": "token-of-" + id,
		"Expiration": until.UTC().Format(time.RFC3339Nano),
	})
}

var authorization = regexp.MustCompile(`^AWS4-HMAC-SHA256 Credential=(\w+)/\d{8}/` +
	Region + `/bedrock/aws4_request, SignedHeaders=([\w;-]+), Signature=[0-9a-f]{64}$`)

// signed checks a signature with AWS' own signer.
func (s *Server) signed(w http.ResponseWriter, r *http.Request, body []byte) bool {
	wrong := func(kind, message string) bool {
		s.refuse(w, http.StatusForbidden, kind, http.Header{"X-Amzn-Errortype": {kind}}, object{"message": message})
		return false
	}
	got := r.Header.Get("Authorization")
	m := authorization.FindStringSubmatch(got)
	if m == nil {
		return wrong("MissingAuthenticationTokenException", "Missing Authentication Token")
	}
	secret, ok := s.known(m[1])
	if !ok {
		return wrong("ExpiredTokenException", "The security token included in the request is expired")
	}
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	if err != nil || time.Since(at).Abs() > 5*time.Minute {
		return wrong("InvalidSignatureException", "Signature expired")
	}
	again := &http.Request{
		Method: r.Method, URL: r.URL, Host: r.Host, Header: http.Header{}, ContentLength: r.ContentLength,
	}
	for name := range strings.SplitSeq(m[2], ";") {
		if v := r.Header.Values(name); v != nil && name != "content-length" {
			again.Header[http.CanonicalHeaderKey(name)] = v
		}
	}
	sum := sha256.Sum256(body)
	credentials := aws.Credentials{AccessKeyID: m[1], SecretAccessKey: secret, SessionToken: "token-of-" + m[1]}
	if err := v4.NewSigner().SignHTTP(r.Context(), credentials, again, hex.EncodeToString(sum[:]),
		"bedrock", Region, at); err != nil || again.Header.Get("Authorization") != got {
		return wrong("InvalidSignatureException",
			"The request signature we calculated does not match the signature you provided.")
	}
	return true
}

func (s *Server) invoke(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if !s.signed(w, r, body) {
		return
	}
	var question object
	if json.Unmarshal(body, &question) != nil || question["anthropic_version"] != "bedrock-2023-05-31" ||
		question["model"] != nil || question["stream"] != nil {
		s.refuse(w, http.StatusBadRequest, "ValidationException",
			http.Header{"X-Amzn-Errortype": {"ValidationException"}}, object{"message": "Malformed input request"})
		return
	}
	if !strings.HasPrefix(r.PathValue("model"), "eu.") { // the profiles of the region
		s.refuse(w, http.StatusBadRequest, "ValidationException",
			http.Header{"X-Amzn-Errortype": {"ValidationException"}},
			object{"message": "The provided model identifier is invalid."})
		return
	}
	streamed := r.PathValue("action") == "invoke-with-response-stream"
	if !streamed && r.PathValue("action") != "invoke" {
		http.NotFound(w, r)
		return
	}
	account := authorization.FindStringSubmatch(r.Header.Get("Authorization"))[1]
	if !s.accept(account) {
		message := "Too many tokens, please wait before trying again."
		if s.exhausted(account) {
			message = "Too many tokens per day, please wait before trying again."
		}
		s.refuse(w, http.StatusTooManyRequests, "ThrottlingException",
			http.Header{"X-Amzn-Errortype": {"ThrottlingException"}}, object{"message": message})
		return
	}
	question["model"], question["stream"] = r.PathValue("model"), streamed
	resp, err := s.ask(r, "/v1/messages", question)
	switch {
	case err != nil:
		panic(http.ErrAbortHandler)
	case !streamed || resp.StatusCode != http.StatusOK:
		pass(w, resp)
	default:
		defer resp.Body.Close()
		w.Header().Set("Content-Type", "application/vnd.amazon.eventstream")
		if frame(w, resp.Body) != nil {
			panic(http.ErrAbortHandler)
		}
	}
}

// frame sends server-sent events as frames of Amazon's event stream.
func frame(w http.ResponseWriter, events io.Reader) error {
	encoder := eventstream.NewEncoder()
	lines := bufio.NewReader(events)
	for {
		line, err := lines.ReadBytes('\n')
		if data, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("data: ")); ok {
			payload, err := json.Marshal(map[string][]byte{"bytes": data})
			if err != nil {
				return err
			}
			err = encoder.Encode(w, eventstream.Message{
				Headers: eventstream.Headers{
					{Name: ":event-type", Value: eventstream.StringValue("chunk")},
					{Name: ":content-type", Value: eventstream.StringValue("application/json")},
					{Name: ":message-type", Value: eventstream.StringValue("event")},
				},
				Payload: payload,
			})
			if err != nil {
				return fmt.Errorf("encode frame: %w", err)
			}
			_ = http.NewResponseController(w).Flush()
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
