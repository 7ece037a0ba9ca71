package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/internal/fake/modelfake"
)

// With ERRAND_GATEWAY=off runs do not reach the model through the worker, as they do otherwise.
func TestGatewayOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.env["ERRAND_GATEWAY"] = "off"
	w.model.Answer("", modelfake.Turn{Text: "Answered."})
	if body := w.chat(t.Context(), w.standalone(), `{"message":"x"}`); !strings.Contains(body, "Answered.") {
		t.Fatalf("chat:\n%s", body)
	}
	if asked := w.model.Requests()[0]; asked.Key != modelKey || throughGateway(asked) {
		t.Errorf("the model was asked with key %q and %v", asked.Key, asked.Header)
	}
}

// throughGateway reports whether the gateway has sent a request, and not the CLI.
func throughGateway(r modelfake.Request) bool { return r.Header.Get("Accept-Encoding") == "identity" }

// seeing is a command that prints what processes of the machine have in their environment.
const seeing = `env; cat /proc/[0-9]*/environ 2>/dev/null | tr '\0' '\n'`

// A token that a command prints, and headers, reach the model, and the run has neither.
func TestModelTokenCommand(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("model-token-of-a-command\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	delete(w.env, "ANTHROPIC_API_KEY")
	w.env["ERRAND_MODEL_TOKEN_COMMAND"], w.env["ANTHROPIC_CUSTOM_HEADERS"] = "cat "+
		file, `X-Team: team-header-4711\nX-Other: b`
	w.model.Answer("", bash(seeing), modelfake.Turn{Text: "Answered."})
	base := w.standalone()
	if body := w.chat(t.Context(), base, `{"message":"x","profile":"write"}`); !strings.Contains(body, "Answered.") {
		t.Fatalf("chat:\n%s", body)
	}
	for _, asked := range w.model.Requests() {
		if asked.Key != "model-token-of-a-command" || asked.Header.Get("X-Team") != "team-header-4711" ||
			asked.Header.Get("X-Other") != "b" || !throughGateway(asked) {
			t.Errorf("the model was asked with %v", asked.Header)
		}
		for _, secret := range []string{"model-token-of-a-command", "team-header-4711"} {
			if strings.Contains(string(asked.Body), secret) {
				t.Errorf("the run has seen %s", secret)
			}
		}
	}
	w.secretsStayInside()
}
